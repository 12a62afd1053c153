//go:build linux

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"berth/events"
	"berth/events/fault"
	"berth/internal/until"
)

// Limits of one image.
const (
	MaxLayers        = 256
	MaxManifestBytes = 4 << 20
	MaxEntries       = 1_000_000
	MaxUnpackedBytes = 32 << 30
)

// HostTemplate is the one template: the host's system directories, read-only.
const HostTemplate = "host"

// Opened is an image whose manifest and configuration were verified.
type Opened struct {
	Digest       string // sha256:<hex> of the manifest
	Architecture string
	Path         string // PATH of its configuration, if any
	image        v1.Image
}

// Describe answers about a reference, read-only; the reference is returned
// unchanged (R16, R17). A template has no content digest (R20).
func Describe(ctx context.Context, im events.Image) (events.ImageDescription, error) {
	switch im.Kind {
	case "template":
		if im.Reference != HostTemplate {
			return events.ImageDescription{}, fault.New(fault.NotFound, "template %q: this provider has only %q", im.Reference, HostTemplate)
		}
		return events.ImageDescription{Image: im, Architecture: runtime.GOARCH, ABI: "linux"}, nil
	case "oci":
		o, err := Open(ctx, im.Reference)
		if err != nil {
			return events.ImageDescription{}, err
		}
		return events.ImageDescription{Image: im, Digest: o.Digest, Architecture: o.Architecture, ABI: "linux"}, nil
	}
	return events.ImageDescription{}, fault.New(fault.BadRequest, "image kind %q: it is template or oci", im.Kind)
}

// Open reads the manifest that a reference leads to: the absolute path of an
// image layout directory or of an archive. Of several images, the one for
// this architecture is taken; more than one such image is refused.
func Open(ctx context.Context, ref string) (*Opened, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(ref) || filepath.Clean(ref) != ref {
		return nil, fault.New(fault.BadRequest, "image %q: an absolute path of an OCI layout directory or an image archive", ref)
	}
	st, err := os.Stat(ref)
	if err != nil {
		return nil, fault.New(fault.NotFound, "image %q: %s", ref, errors.Unwrap(err))
	}
	var img v1.Image
	if st.IsDir() {
		img, err = fromLayout(ref)
	} else {
		img, err = tarball.ImageFromPath(ref, nil)
	}
	if err != nil {
		return nil, unusable(ref, err)
	}
	return verify(ref, img)
}

func unusable(ref string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	return fault.New(fault.FailedPrecondition, "image %q can't be used: %s", ref, err)
}

func fromLayout(dir string) (v1.Image, error) {
	idx, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	found, err := candidates(idx, 0)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("it holds %d images for linux/%s, and exactly one is needed", len(found), runtime.GOARCH)
	}
	return found[0], nil
}

// candidates are the images for this platform; indexes nest at most once.
func candidates(idx v1.ImageIndex, depth int) ([]v1.Image, error) {
	m, err := idx.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(m.Manifests) > MaxLayers {
		return nil, fmt.Errorf("its index has %d entries, at most %d", len(m.Manifests), MaxLayers)
	}
	var out []v1.Image
	for _, d := range m.Manifests {
		if d.Size > MaxManifestBytes {
			return nil, fmt.Errorf("manifest %s is longer than %d bytes", d.Digest, MaxManifestBytes)
		}
		switch {
		case d.MediaType.IsIndex() && depth == 0:
			sub, err := idx.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			raw, err := sub.RawManifest()
			if err != nil {
				return nil, err
			}
			if err := same("index", raw, d.Digest, d.Size); err != nil {
				return nil, err
			}
			more, err := candidates(sub, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		case d.MediaType.IsImage():
			if d.Platform != nil && (d.Platform.OS != "linux" || d.Platform.Architecture != runtime.GOARCH) {
				continue
			}
			img, err := idx.Image(d.Digest)
			if err != nil {
				return nil, err
			}
			raw, err := img.RawManifest()
			if err != nil {
				return nil, err
			}
			if err := same("manifest", raw, d.Digest, d.Size); err != nil {
				return nil, err
			}
			out = append(out, img)
		}
	}
	return out, nil
}

func same(what string, b []byte, want v1.Hash, size int64) error {
	h := sha256.Sum256(b)
	if want.Algorithm != "sha256" || hex.EncodeToString(h[:]) != want.Hex {
		return fmt.Errorf("its %s does not have the digest %s", what, want)
	}
	if size != int64(len(b)) {
		return fmt.Errorf("its %s has %d bytes where %d are named", what, len(b), size)
	}
	return nil
}

func verify(ref string, img v1.Image) (*Opened, error) {
	m, err := img.Manifest()
	if err != nil {
		return nil, unusable(ref, err)
	}
	raw, err := img.RawConfigFile()
	if err != nil {
		return nil, unusable(ref, err)
	}
	if err := same("configuration", raw, m.Config.Digest, m.Config.Size); err != nil {
		return nil, unusable(ref, err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, unusable(ref, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, unusable(ref, err)
	}
	if cfg.OS != "" && cfg.OS != "linux" || cfg.Architecture != "" && cfg.Architecture != runtime.GOARCH {
		return nil, fault.New(fault.FailedPrecondition, "image %q is for %s/%s and this host is linux/%s", ref, cfg.OS, cfg.Architecture, runtime.GOARCH)
	}
	if len(m.Layers) > MaxLayers {
		return nil, fault.New(fault.FailedPrecondition, "image %q has %d layers, at most %d", ref, len(m.Layers), MaxLayers)
	}
	o := &Opened{Digest: digest.String(), Architecture: runtime.GOARCH, image: img}
	for _, e := range cfg.Config.Env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok {
			o.Path = p
		}
	}
	return o, nil
}

// verifyLayers reads every layer once and compares its length and digest.
func (o *Opened) verifyLayers(ctx context.Context) error {
	layers, err := o.image.Layers()
	if err != nil {
		return err
	}
	for _, l := range layers {
		want, err := l.Digest()
		if err != nil {
			return err
		}
		size, err := l.Size()
		if err != nil {
			return err
		}
		rc, err := l.Compressed()
		if err != nil {
			return err
		}
		h := sha256.New()
		n, err := io.Copy(h, io.LimitReader(until.Reader(ctx, rc), size+1))
		_ = rc.Close()
		if err != nil {
			return err
		}
		if n != size || hex.EncodeToString(h.Sum(nil)) != want.Hex {
			return fmt.Errorf("layer %s does not have its digest and length", want)
		}
	}
	return nil
}
