package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"time"

	"berth/events/fault"
)

// child is a process of a role.
type child struct {
	hello
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ready time.Duration // from its start to its hello
}

// begin starts a process and waits until it is ready. It ends with ctx.
func begin(ctx context.Context, r role) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, RoleArg, string(arg))}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	start := time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	err = c.read(&c.hello)
	c.ready = time.Since(start)
	if err == nil && c.Error != "" {
		err = fault.New(fault.Internal, "the %s of the benchmark did not start: %s", r.Kind, c.Error)
	}
	if err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

func (c *child) read(to any) error {
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return fault.New(fault.Internal, "a process of the benchmark ended: %s", err)
	}
	return json.Unmarshal(line, to)
}

// ask is a figure of the process.
func (c *child) ask(what string) (float64, error) {
	if _, err := io.WriteString(c.in, what+"\n"); err != nil {
		return 0, err
	}
	var f figure
	err := c.read(&f)
	if err == nil && f.Error != "" {
		err = fault.New(fault.Internal, "a process of the benchmark could not %s: %s", what, f.Error)
	}
	return f.Value, err
}

// stop lets the process end by itself.
func (c *child) stop() error {
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		return fault.New(fault.Internal, "a process of the benchmark failed: %s", err)
	}
	return nil
}

// kill ends the process at once, as kill -9 does. It may be called after stop.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
