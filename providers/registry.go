package providers

import (
	"maps"
	"slices"
	"strings"

	"berth/events"
	"berth/events/fault"
)

// Surface is one part of a provider's bundle. Every bundle speaks of every
// surface: supported, or not with a reason.
type Surface string

// The surfaces. The first ones no driver can be without.
const (
	SurfaceHost       Surface = "host"       // HostFacts
	SurfaceImage      Surface = "image"      // DescribeImage, Preflight
	SurfaceLife       Surface = "life"       // reserve, provision, start, stop, destroy
	SurfaceReconcile  Surface = "reconcile"  // Reconcile, Inspect
	SurfaceExclude    Surface = "exclude"    // a real fence
	SurfacePause      Surface = "pause"      // pause, resume
	SurfaceExtend     Surface = "extend"     // extend
	SurfaceCheckpoint Surface = "checkpoint" // checkpoint
	SurfaceRestore    Surface = "restore"    // restore, in place
	SurfaceExport     Surface = "export"     // export, delete-file, ReadFile
	SurfaceLogs       Surface = "logs"       // Logs
	SurfaceList       Surface = "list"       // List
	SurfaceWatch      Surface = "watch"      // Watcher
	SurfaceAdopt      Surface = "adopt"      // Adopter
	SurfaceTerminal   Surface = "terminal"   // Terminal
)

// Surfaces lists every surface; Required are those that can't be unsupported.
var (
	Surfaces = []Surface{SurfaceHost, SurfaceImage, SurfaceLife, SurfaceReconcile, SurfaceExclude, SurfacePause,
		SurfaceExtend, SurfaceCheckpoint, SurfaceRestore, SurfaceExport, SurfaceLogs, SurfaceList, SurfaceWatch, SurfaceAdopt, SurfaceTerminal}
	Required = []Surface{SurfaceHost, SurfaceImage, SurfaceLife, SurfaceReconcile}
)

// Support says whether a surface is there; Reason is why not, in public text.
type Support struct {
	Supported bool   `json:"supported"`
	Reason    string `json:"reason,omitempty"`
}

// Bundle is one registration unit: a driver and what it says of each surface.
type Bundle struct {
	Driver   Driver
	Surfaces map[Surface]Support
}

// BundleOf is the bundle of a driver that supports everything but the reasons
// given; the optional interfaces that it does not implement are unsupported
// by themselves.
func BundleOf(d Driver, unsupported map[Surface]string) Bundle {
	b := Bundle{Driver: d, Surfaces: map[Surface]Support{}}
	for _, s := range Surfaces {
		b.Surfaces[s] = Support{Supported: true}
	}
	if _, ok := d.(Watcher); !ok {
		b.Surfaces[SurfaceWatch] = Support{Reason: "changes are found by polling"}
	}
	if _, ok := d.(Adopter); !ok {
		b.Surfaces[SurfaceAdopt] = Support{Reason: "environments are not bound to this host"}
	}
	if _, ok := d.(Terminal); !ok {
		b.Surfaces[SurfaceTerminal] = Support{Reason: "it does not own the terminal of its seats"}
	}
	for s, why := range unsupported {
		b.Surfaces[s] = Support{Reason: why}
	}
	return b
}

// Entry is one registered provider. Its driver and terminal are guarded;
// Watcher, Adopter and Terminal are nil where the surface is unsupported.
type Entry struct {
	Name     string
	Driver   Driver
	Watcher  Watcher
	Adopter  Adopter
	Terminal Terminal
	surfaces map[Surface]Support
}

// Supports is what the bundle said at registration; it never changes.
func (e Entry) Supports(s Surface) Support { return e.surfaces[s] }

// MaxProviders is how many providers one manager registers.
const MaxProviders = 32

// Registry holds the providers of one manager. It is filled before use and
// only read afterwards, so that it needs no lock.
type Registry struct{ entries map[string]Entry }

// NewRegistry checks every bundle whole and freezes it: a driver that changes
// its map later changes nothing here. Any fault of one bundle refuses all,
// with bad-request (or already-exists for a name given twice).
func NewRegistry(bundles ...Bundle) (*Registry, error) {
	if len(bundles) > MaxProviders {
		return nil, fault.New(fault.BadRequest, "%d providers, at most %d can be registered", len(bundles), MaxProviders)
	}
	r := &Registry{entries: make(map[string]Entry, len(bundles))}
	for _, b := range bundles {
		e, err := freeze(b)
		if err != nil {
			return nil, err
		}
		if _, ok := r.entries[e.Name]; ok {
			return nil, fault.New(fault.AlreadyExists, "provider %s is registered twice", e.Name)
		}
		r.entries[e.Name] = e
	}
	return r, nil
}

func freeze(b Bundle) (Entry, error) {
	if b.Driver == nil {
		return Entry{}, fault.New(fault.BadRequest, "a bundle without a driver")
	}
	raw := Raw(b.Driver)
	name := raw.Name()
	if _, err := events.ParseActor(name); err != nil {
		return Entry{}, fault.New(fault.BadRequest, "provider name %q is not valid: letters, digits, - and _", events.Scrub(name))
	}
	bad := func(s Surface, format string, args ...any) (Entry, error) {
		return Entry{}, fault.New(fault.BadRequest, "provider %s, surface %s: "+format, append([]any{name, events.Scrub(string(s))}, args...)...)
	}
	for s := range b.Surfaces {
		if !slices.Contains(Surfaces, s) {
			return bad(s, "there is no such surface")
		}
	}
	watcher, watches := raw.(Watcher)
	adopter, adopts := raw.(Adopter)
	terminal, shows := raw.(Terminal)
	for _, s := range Surfaces {
		v, ok := b.Surfaces[s]
		switch {
		case !ok:
			return bad(s, "neither supported nor refused with a reason")
		case v.Supported && v.Reason != "":
			return bad(s, "supported, yet with a reason against it")
		case v.Supported && (s == SurfaceWatch && !watches || s == SurfaceAdopt && !adopts || s == SurfaceTerminal && !shows):
			return bad(s, "supported, but the driver does not implement it")
		case !v.Supported && slices.Contains(Required, s):
			return bad(s, "no provider can be without it")
		case !v.Supported:
			if err := events.CheckText("reason", v.Reason); err != nil {
				return bad(s, "unsupported without a usable reason: %s", fault.From(err).Message)
			}
		}
	}
	e := Entry{Name: name, Driver: Guard(raw), surfaces: maps.Clone(b.Surfaces)}
	if b.Surfaces[SurfaceWatch].Supported {
		e.Watcher = watcher
	}
	if b.Surfaces[SurfaceAdopt].Supported {
		e.Adopter = adopter
	}
	if b.Surfaces[SurfaceTerminal].Supported {
		e.Terminal = guardedTerminal{guard{raw}, terminal}
	}
	return e, nil
}

// Get finds a provider by name; not-found lists those that there are.
func (r *Registry) Get(name string) (Entry, error) {
	if e, ok := r.entries[name]; ok {
		return e, nil
	}
	return Entry{}, fault.New(fault.NotFound, "no provider %q; registered are: %s", events.Scrub(name), strings.Join(r.Names(), ", "))
}

// Names lists the registered names, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.entries)) }

// Close closes every driver and returns the first error.
func (r *Registry) Close() error {
	var first error
	for _, n := range r.Names() {
		if err := r.entries[n].Driver.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
