package berth

import (
	"context"
	"os"

	"berth/commands/door"
	"berth/commands/plane"
	"berth/internal/durable"
	"berth/providers/process"
)

// doorDir is where seats of the process provider find this manager, made once:
// they keep it mounted while managers come and go.
func doorDir(d *DataDir) (string, error) {
	dir := process.DoorDir(d.File(seatsDir))
	if err := durable.MakeDir(dir); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) // seats are other users
}

// answerSeats serves what seats ask for themselves, as the plane answers it.
func (m *Manager) answerSeats(ctx context.Context) error {
	dir, err := doorDir(m.dir)
	if err != nil {
		return err
	}
	return door.Serve(ctx, door.Options{Dir: dir, Space: m.opts.Space, Owner: plane.LocalOwner, Handler: m.plane, Seat: m.shelf.Seat, Logger: m.logger})
}
