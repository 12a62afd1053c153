//go:build linux

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
	"berth/providers/process/stage"
	"berth/providers/seat"
)

// ExposeBearer says which sources a seat of this plan reaches (R43, R51): an
// https one over the host's network; a socket of the host, which an isolated
// seat sees at the same path, and only below the directories that are memory of
// its own there.
func (d *Driver) ExposeBearer(plan events.Plan, s events.BearerSource) error {
	ch, err := choices(plan)
	if err != nil {
		return err
	}
	refuse := func(why string) error {
		e := providers.CannotExpose(d.Name(), s.Kind)
		return e.WithHint("%s", why)
	}
	if s.Kind == events.BearerHTTPS {
		if ch.network != "host" {
			return refuse("a seat without a network reaches no host")
		}
		return nil
	}
	if ch.isolated && !slices.ContainsFunc(stage.SocketRoots, func(root string) bool { return strings.HasPrefix(s.Path, root+"/") }) {
		return refuse("an isolated seat can be shown sockets below " + strings.Join(stage.SocketRoots, " and ") + " only")
	}
	if st, err := os.Lstat(s.Path); err != nil || st.Mode().Type() != fs.ModeSocket {
		return refuse("there is no socket at that path of this host")
	}
	return nil
}

// socketOf is the socket that the staged launch request names; empty if it
// names none. Nothing else decides it (R47).
func socketOf(c *seat.Call) (string, error) {
	b, err := os.ReadFile(c.Dir.File(filepath.Join(seatdir.DirMaterial, providers.MaterialLaunch)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r, err := events.DecodeLaunchRequest(b)
	if err != nil {
		return "", fault.New(fault.FailedPrecondition, "the staged launch request of environment %s can't be read: %s", c.Op.Environment, fault.From(err).Message)
	}
	if s := r.Authentication.BearerSource; s != nil {
		return s.Path, nil
	}
	return "", nil
}
