//go:build linux

package process

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/providertest"
)

// hostSocket answers every connection with a word, on a socket that others may
// connect to.
func hostSocket(t *testing.T) (path string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "berth-source-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "deep", "authority.sock")
	l, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("from-the-authority\n"))
			_ = c.Close()
		}
	}()
	return path
}

func listen(path string) (net.Listener, error) {
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	return l, err
}

// R43, R47, R56: when it starts, the seat has its material and sees the socket that its launch request names, at that
// path, and no other of the host; it finds the path in the request.
func TestASeatReachesItsBearerSource(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path, other := hostSocket(t), hostSocket(t)
	p := r.plan(`echo named=$(grep -c '"path":"` + path + `"' $BERTH_MATERIAL/launch-request) environment=$(grep -c "$BERTH_ENVIRONMENT" $BERTH_MATERIAL/launch-request)
[ -S ` + path + ` ] && echo socket=yes; [ -e ` + other + ` ] && echo SEES-ANOTHER
if [ -x /usr/bin/perl ]; then /usr/bin/perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "connect: $!"; print <$s>' ` + path + `; fi; echo end`)
	source := events.BearerSource{Kind: events.BearerSocket, Path: path}
	if err := r.d.ExposeBearer(p, source); err != nil {
		t.Fatal(err)
	}
	var material providers.Material
	id := r.provisioned(p, func(op *providers.Operation) {
		m, err := providertest.Launch(*op, &source)
		if err != nil {
			t.Fatal(err)
		}
		if op.Verb == events.VerbProvision {
			op.Material, material = m, m
		}
	})
	op := r.op(id, events.VerbStart)
	op.Material = material
	r.must(op)
	got := r.untilLog(id, "end\r\n")
	want := []string{"named=1 environment=1", "socket=yes"}
	if _, err := os.Stat("/usr/bin/perl"); err == nil {
		want = append(want, "from-the-authority")
	}
	for _, s := range want {
		if !strings.Contains(got, s) {
			t.Errorf("missing %q in %s", s, got)
		}
	}
	if isolated := p.Options[OptionIsolation] != "none"; isolated && strings.Contains(got, "SEES-ANOTHER") {
		t.Errorf("the seat sees another socket of the host: %s", got)
	}
}

// R51: what a seat of the plan could not reach is refused, and nothing stands in for it.
func TestSourcesThatASeatDoesNotReach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path, none := hostSocket(t), "none"
	for name, c := range map[string]struct {
		change func(*events.Plan)
		source events.BearerSource
		ok     bool
	}{
		"https, the host's network":  {func(*events.Plan) {}, events.BearerSource{Kind: events.BearerHTTPS, URL: "https://h"}, true},
		"https without a network":    {func(p *events.Plan) { p.Network = &none }, events.BearerSource{Kind: events.BearerHTTPS, URL: "https://h"}, false},
		"a socket":                   {func(*events.Plan) {}, events.BearerSource{Kind: events.BearerSocket, Path: path}, true},
		"a socket without a network": {func(p *events.Plan) { p.Network = &none }, events.BearerSource{Kind: events.BearerSocket, Path: path}, true},
		"no such socket":             {func(*events.Plan) {}, events.BearerSource{Kind: events.BearerSocket, Path: path + "x"}, false},
		"a directory":                {func(*events.Plan) {}, events.BearerSource{Kind: events.BearerSocket, Path: filepath.Dir(path)}, false},
		"outside of the seat's tree": {func(*events.Plan) {}, events.BearerSource{Kind: events.BearerSocket, Path: "/var/lib/authority.sock"}, false},
		"a third kind":               {func(*events.Plan) {}, events.BearerSource{Kind: "tcp"}, false},
		"a plan that is refused":     {func(p *events.Plan) { p.Options["x"] = "y" }, events.BearerSource{Kind: events.BearerHTTPS, URL: "https://h"}, false},
		"a socket beside isolation":  {func(p *events.Plan) { p.Options[OptionIsolation] = "none" }, events.BearerSource{Kind: events.BearerSocket, Path: path}, true},
	} {
		p := events.Plan{Options: map[string]string{}}
		c.change(&p)
		err := providers.ExposeBearer(r.d, p, c.source)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if code := fault.CodeOf(err); !c.ok && code != fault.FailedPrecondition && code != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}
