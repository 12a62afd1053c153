package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"

	"berth"
	"berth/events"
	"berth/events/fault"
)

// connectTimeout is how long a server may take to answer at all.
const connectTimeout = 5 * time.Second

// dataDir is --data, else BERTH_DATA, else berth below XDG_STATE_HOME or
// ~/.local/state.
func (a *app) dataDir() (string, error) {
	if a.data != "" {
		return a.data, nil
	}
	if d := a.Env("BERTH_DATA"); d != "" {
		return d, nil
	}
	if d := a.Env("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "berth"), nil
	}
	home := a.Env("HOME")
	if home == "" {
		return "", usage("there is no home directory to keep data in").WithHint("say where with --data DIR")
	}
	return filepath.Join(home, ".local", "state", "berth"), nil
}

// place is a server, and what is known of the manager behind it.
type place struct {
	conn   *nats.Conn
	space  events.Space
	caller events.Caller // zero: the manager has to be asked
	// dir is the data directory of the manager, and instance its id, where they
	// are known from an endpoint file.
	dir      string
	instance events.InstanceID
	// again finds the manager that came after, which may be elsewhere.
	again func(old *nats.Conn) (*nats.Conn, error)
}

// reach connects to a manager's server: --server, then --context, then --data,
// then NATS_URL, then the selected NATS context, then the endpoint file of the
// default data directory. A flag goes before the environment.
func (a *app) reach() (place, error) {
	p := place{space: "default"}
	if a.space != "" {
		s, err := events.ParseSpace(a.space)
		if err != nil {
			return p, err
		}
		p.space = s
	}
	var err error
	switch url := a.Env("NATS_URL"); {
	case a.server != "":
		p.conn, err = a.dial(a.server)
	case a.context != "":
		return a.dialContext(p, a.context)
	case a.data != "":
		return a.dialData(p)
	case url != "":
		p.conn, err = a.dial(url)
	case a.selectedContext():
		return a.dialContext(p, "")
	default:
		return a.dialData(p)
	}
	if err == nil {
		a.recognise(&p)
	}
	return p, err
}

func (a *app) options() ([]nats.Option, error) {
	o := []nats.Option{nats.ErrorHandler(a.serverSays), nats.Name("berth client"), nats.Timeout(connectTimeout), nats.MaxReconnects(10), nats.ReconnectWait(200 * time.Millisecond)}
	creds := a.creds
	if creds == "" {
		creds = a.Env("NATS_CREDS")
	}
	if creds != "" {
		if _, err := os.Stat(creds); err != nil {
			return nil, usage("--creds (or NATS_CREDS): %s", events.Scrub(err.Error()))
		}
		o = append(o, nats.UserCredentials(creds))
	}
	return o, nil
}

// serverSays hears what a server says out of turn. That it lets this program
// not ask is an answer: there will be no other.
func (a *app) serverSays(_ *nats.Conn, _ *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		a.giveUp(fault.New(fault.PermissionDenied, "the server does not let this program ask: %s", events.Scrub(err.Error())).
			WithHint("look at --space and --creds; `berth doctor` looks at the connection"))
	}
}

func (a *app) dial(url string) (*nats.Conn, error) {
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(url, o...)
	if err != nil {
		return nil, silent(url, err)
	}
	return nc, nil
}

// silent is the refusal when no server answers: nothing was sent.
func silent(url string, err error) error {
	return fault.New(fault.Unavailable, "no NATS server answers at %s: %s", events.Scrub(url), events.Scrub(err.Error())).
		WithOutcome(fault.NotExecuted).WithHint("start a manager with `berth up`, or say where it is with --server")
}

func (a *app) dialContext(p place, name string) (place, error) {
	o, err := a.options()
	if err != nil {
		return p, err
	}
	nc, _, err := natscontext.Connect(name, o...)
	if err != nil {
		return p, silent("the NATS context "+name, err)
	}
	p.conn = nc
	a.recognise(&p)
	return p, nil
}

// selectedContext says that the user selected a NATS context.
func (a *app) selectedContext() bool {
	base := a.Env("XDG_CONFIG_HOME")
	if base == "" {
		base = filepath.Join(a.Env("HOME"), ".config")
	}
	b, err := os.ReadFile(filepath.Join(base, "nats", "context.txt"))
	return err == nil && strings.TrimSpace(string(b)) != ""
}

func (a *app) dialData(p place) (place, error) {
	dir, err := a.dataDir()
	if err != nil {
		return p, err
	}
	a.local = true
	e, err := berth.ReadEndpoint(dir)
	if err != nil {
		return p, err
	}
	if p.conn, err = a.dial(e.NATS); fault.CodeOf(err) == fault.BadRequest {
		return p, err
	} else if err != nil {
		return p, fault.New(fault.Unavailable, "the manager of %s does not answer at %s", dir, e.NATS).
			WithOutcome(fault.NotExecuted).WithHint("start it again: berth up --data %s", dir)
	}
	p.caller, p.dir, p.instance = e.Caller, dir, e.Instance
	if a.space == "" {
		p.space = e.Space
	}
	p.again = func(old *nats.Conn) (*nats.Conn, error) { return a.dialAgain(dir, old) }
	return p, nil
}

// dialAgain connects to the manager that a data directory has now. One that
// was not restarted elsewhere is left to the connection's own tries, as long
// as it makes them.
func (a *app) dialAgain(dir string, old *nats.Conn) (*nats.Conn, error) {
	e, err := berth.ReadEndpoint(dir)
	if err != nil {
		return nil, err
	}
	if !old.IsClosed() && slices.ContainsFunc(old.Servers(), func(s string) bool { return sameServer(s, e.NATS) }) {
		return nil, fault.New(fault.Unavailable, "the manager of %s has not come back", dir)
	}
	nc, err := a.dial(e.NATS)
	if err == nil {
		fmt.Fprintf(a.Stderr, "the manager was restarted and is at %s now: going on\n", e.NATS)
	}
	return nc, err
}

// recognise takes the caller from the default data directory's endpoint, if
// that is the manager which was connected to.
func (a *app) recognise(p *place) {
	dir, err := a.dataDir()
	if err != nil {
		return
	}
	e, err := berth.ReadEndpoint(dir)
	if err != nil || !sameServer(e.NATS, p.conn.ConnectedUrl()) || e.Space != p.space && a.space != "" {
		return
	}
	p.caller, p.space, p.dir, p.instance = e.Caller, e.Space, dir, e.Instance
}

func sameServer(a, b string) bool {
	return strings.TrimPrefix(a, "nats://") == strings.TrimPrefix(b, "nats://")
}
