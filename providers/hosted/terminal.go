package hosted

import (
	"context"
	"net/http"
	"net/url"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

var _ providers.Terminal = (*Driver)(nil)

// Input types into a seat there. It is sent once: when the answer is lost,
// some of it may have been typed.
func (d *Driver) Input(ctx context.Context, id events.EnvironmentID, ref string, data []byte) (int, error) {
	out, err := ask[wire.Delivered](ctx, d, wire.PathInput, wire.Typed{Environment: id, Ref: ref, Data: data})
	if err != nil {
		return 0, err
	}
	if out.Fault != nil {
		return out.Delivered, providers.ScrubFault(d.link.clean(out.Fault), providers.Material{"input": data})
	}
	if out.Delivered != len(data) {
		return out.Delivered, fault.New(fault.Unavailable, "provider %s typed %d of %d bytes, and does not say why", d.name, out.Delivered, len(data))
	}
	return out.Delivered, nil
}

// Resize changes the size of a terminal there.
func (d *Driver) Resize(ctx context.Context, id events.EnvironmentID, ref string, size providers.Size) error {
	_, err := ask[struct{}](ctx, d, wire.PathResize, wire.Resized{Environment: id, Ref: ref, Size: size})
	return err
}

// View looks at a terminal there. A line that is cut ends it with an error,
// never as if the seat had ended; a new view begins with the whole screen.
func (d *Driver) View(ctx context.Context, id events.EnvironmentID, ref string) (providers.View, error) {
	ctx, cancel := context.WithCancel(ctx)
	res, e := d.link.open(ctx, environmentPath(wire.PathScreen, id, "", url.Values{"ref": {ref}}), "")
	if e != nil {
		cancel()
		return nil, e
	}
	if res.StatusCode != http.StatusOK {
		defer cancel()
		defer res.Body.Close()
		return nil, d.link.failed(ctx, res)
	}
	return &view{PartStream: providers.PartStream{R: res.Body, C: res.Body}, cancel: cancel}, nil
}

// view is the stream of parts; its end ends the request.
type view struct {
	providers.PartStream
	cancel context.CancelFunc
}

// Close implements providers.View.
func (v *view) Close() error {
	v.cancel()
	return v.PartStream.Close()
}
