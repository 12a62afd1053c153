//go:build linux

package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"berth/providers/process/seatdir"
)

// TrialRole is the first argument that makes the program try a seat's root.
const TrialRole = "__trial"

// maxComplaint bounds what a failed trial may say, in bytes.
const maxComplaint = 4096

// Try has the program build an isolated seat's whole root in dir, in every
// namespace, without executing anything in it: the proof that this host lets
// us. env is added to the program's environment.
func Try(ctx context.Context, self, dir string, env []string) error {
	idBase := 0
	if os.Geteuid() == 0 {
		idBase = IDBase
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	for _, n := range []string{seatdir.DirHome, seatdir.DirRoot} {
		p := filepath.Join(dir, n)
		if err := os.Mkdir(p, 0o755); err != nil {
			return err
		}
		if idBase != 0 {
			if err := os.Lchown(p, idBase, idBase); err != nil {
				return err
			}
		}
	}
	cmd := exec.CommandContext(ctx, self, TrialRole, dir)
	cmd.Env = append([]string{}, env...)
	out, err := cmd.Output()
	if said := strings.TrimSpace(string(out[:min(len(out), maxComplaint)])); err != nil && said != "" {
		return fmt.Errorf("%s", said)
	}
	return err
}

// TrialMain is the role: it prints what failed, if anything did.
func TrialMain(dir string) int {
	// The seat's user may not reach the directory by its path; it inherits it.
	if err := unix.Chdir(dir); err != nil {
		fmt.Println(err)
		return 1
	}
	idBase := 0
	if os.Geteuid() == 0 {
		idBase = IDBase
	}
	if err := trial(seatdir.Seat{Isolated: true, Network: "none", Hostname: "seat"}, idBase); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func trial(s seatdir.Seat, idBase int) error {
	orders, err := json.Marshal(s)
	if err != nil {
		return err
	}
	or, ow, err := os.Pipe()
	if err != nil {
		return err
	}
	defer or.Close()
	defer ow.Close()
	sr, sw, err := os.Pipe()
	if err != nil {
		return err
	}
	defer sr.Close()
	defer sw.Close()
	cmd := exec.Command("/proc/self/exe", Role)
	cmd.ExtraFiles = []*os.File{or, sw}
	cmd.SysProcAttr = Attributes(s, idBase)
	cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Pdeathsig = false, 0
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("making namespaces: %w", err)
	}
	_, _ = or.Close(), sw.Close()
	_, werr := ow.Write(orders)
	_ = ow.Close()
	said, rerr := io.ReadAll(io.LimitReader(sr, maxComplaint))
	err = cmd.Wait()
	switch {
	case len(said) > 0:
		return fmt.Errorf("%s", strings.TrimSpace(string(said)))
	case werr != nil:
		return werr
	case rerr != nil:
		return rerr
	}
	return err
}
