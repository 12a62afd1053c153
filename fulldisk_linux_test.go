package berth_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"berth"
	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events/fault"
)

// fullDir names the data directory to the process whose disk is full.
const fullDir = "BERTH_TEST_FULL_DIR"

// A write error of the log ends the manager with exit code 5: the server takes
// no more writes until it is started anew, so answering on would be pretence.
// What was acknowledged is there at the next start.
func TestAFullDiskEndsTheManager(t *testing.T) {
	if dir := os.Getenv(fullDir); dir != "" {
		os.Exit(int(fault.ExitOf(runUntilFull(dir))))
	}
	dir := t.TempDir()
	r := start(t, berth.Options{DataDir: dir})
	kept := r.spawn("kept")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestAFullDiskEndsTheManager$")
	cmd.Env = append(os.Environ(), fullDir+"="+dir)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != int(fault.ExitConflict) {
		t.Fatalf("the manager ended with %d, %v, want %d:\n%s", code, err, fault.ExitConflict, out)
	}

	r = start(t, berth.Options{DataDir: dir})
	r.wait("kept", kept.UID, aggregates.StatusRunning)
	r.spawn("after")
}

// runUntilFull runs a manager, then lets no file grow any more, and asks for
// environments until the manager has ended. Its error is the result.
func runUntilFull(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := berth.New(ctx, berth.Options{DataDir: dir, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", MinFree: -1})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	select {
	case <-m.Ready():
	case err := <-done:
		return err
	}
	nc, err := nats.Connect(m.Endpoint().NATS)
	if err != nil {
		return err
	}
	c := client.Connect(nc, m.Endpoint().Space, m.Endpoint().Caller)
	most := largest(dir)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		return err
	}
	for i := 0; ; i++ {
		in := commands.SpawnInput{Name: fmt.Sprintf("n%d", i), Provider: "drill", Command: []string{"true"}}
		_, err := client.Call(ctx, c, commands.Spawn, in, client.WithTimeout(time.Second), client.WithPatience(time.Second))
		fmt.Println(in.Name, err)
		select {
		case err := <-done:
			fmt.Println("ended:", err)
			return err
		default:
		}
	}
}

// largest is the size of the largest block of a log.
func largest(dir string) (most uint64) {
	blocks, _ := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	for _, b := range blocks {
		if info, err := os.Stat(b); err == nil {
			most = max(most, uint64(info.Size()))
		}
	}
	return most
}
