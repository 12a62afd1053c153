package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"berth"
	"berth/events"
	"berth/events/fault"
	"berth/internal/embedded"
	"berth/internal/steady"
	"berth/providers/drill"
)

// RoleArg is the program's hidden verb for what must be measured in a process
// of its own. It has one argument, a role as JSON.
const RoleArg = "__bench"

// role is what a process of a benchmark is. It says hello on standard output
// when it is ready, answers a figure for each line of standard input, and
// ends when that is closed.
type role struct {
	Kind string `json:"kind"` // server, manager, drill, provider or fetch
	Dir  string `json:"dir"`  // the data directory of a manager
	NATS string `json:"nats,omitempty"`
	// Strict syncs every message by itself; otherwise the server syncs at
	// intervals, which is for filling and for memory only.
	Strict bool `json:"strict,omitempty"`
	// Hosted is the provider of a manager, as berth up has it, or the address
	// of a fetch; Bare is where the raw side is.
	Hosted string      `json:"hosted,omitempty"`
	Bare   string      `json:"bare,omitempty"`
	File   events.File `json:"file,omitzero"` // of provider and fetch
}

// hello is the first line of a process.
type hello struct {
	Error    string         `json:"error,omitempty"`
	Endpoint berth.Endpoint `json:"endpoint"`
	Hosted   string         `json:"hosted,omitempty"` // where a provider is
	Bare     string         `json:"bare,omitempty"`   // where its raw side is
}

// figure is the answer to a question.
type figure struct {
	Value float64 `json:"value"`
	Error string  `json:"error,omitempty"`
}

// The questions.
const (
	askHeap = "heap" // bytes in use after a collection
	askCPU  = "cpu"  // microseconds of processor time since the start
	askPeak = "peak" // the most bytes that the process held so far
	// A fetch answers how many microseconds a copy took.
	askFetch = "fetch"
	askBare  = "bare"
)

// Main runs a role; handled says that args, which are without the program's
// name, named one, and code is its exit code.
func Main(args []string) (handled bool, code int) {
	if len(args) != 2 || args[0] != RoleArg {
		return false, 0
	}
	var r role
	if err := json.Unmarshal([]byte(args[1]), &r); err != nil {
		return true, int(fault.ExitUsage)
	}
	if err := r.run(os.Stdin, os.Stdout); err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(hello{Error: err.Error()})
		return true, int(fault.ExitFailure)
	}
	return true, 0
}

func (r role) run(in io.Reader, out io.Writer) error {
	switch r.Kind {
	case "server":
		return r.server(in, out)
	case "manager":
		return r.manager(in, out)
	case "drill":
		return r.drill(in, out)
	case "provider":
		return r.provider(in, out)
	case "fetch":
		return r.fetch(in, out)
	}
	return fmt.Errorf("there is no role %q", r.Kind)
}

// answer says hello and answers until in ends. Work is what else may be asked
// for; the answer is how long it took, in microseconds.
func answer(in io.Reader, out io.Writer, h hello, work map[string]func() error) error {
	w := json.NewEncoder(out)
	if err := w.Encode(h); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var f figure
		switch q := lines.Text(); q {
		case askHeap:
			f.Value = heap()
		case askCPU:
			f.Value = micros(steady.ProcessorTime())
		case askPeak:
			f.Value = peakMemory()
		default:
			if do := work[q]; do != nil {
				var err error
				if f.Value, err = clocked(do); err != nil {
					f.Error = err.Error()
				}
			}
		}
		if err := w.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// heap collects twice, so that what finalizers held is gone too.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func (r role) server(in io.Reader, out io.Writer) error {
	s, err := embedded.Start(context.Background(), embedded.Options{StoreDir: filepath.Join(r.Dir, "nats"), SyncAlways: r.Strict, Listen: true})
	if err != nil {
		return err
	}
	defer s.Stop()
	return answer(in, out, hello{Endpoint: berth.Endpoint{NATS: s.ClientURL()}}, nil)
}

func (r role) manager(in io.Reader, out io.Writer) error {
	script, err := emptyScript(r.Dir)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o := berth.Options{DataDir: r.Dir, Space: space, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", NATS: r.NATS, Drill: script, MinFree: -1}
	if r.Hosted != "" {
		o.Hosted = []string{r.Hosted}
	}
	if !r.Strict {
		o.Durability = berth.Group
	}
	m, err := berth.New(ctx, o)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-m.Ready():
	}
	if err := answer(in, out, hello{Endpoint: m.Endpoint()}, nil); err != nil {
		return err
	}
	stop()
	return <-ended
}

// emptyScript is a drill provider that does everything right.
func emptyScript(dir string) (string, error) {
	path := filepath.Clean(dir) + ".drill.json"
	return path, os.WriteFile(path, []byte(`{"rules":[]}`), 0o600)
}

// drill holds the provider's own state alone, to know what it weighs.
func (r role) drill(in io.Reader, out io.Writer) error {
	d, err := drill.Open(drill.Config{Dir: filepath.Join(r.Dir, "drill"), Clock: func() time.Time { return events.MillisUTC(time.Now()) }})
	if err != nil {
		return err
	}
	defer d.Close()
	return answer(in, out, hello{}, nil)
}
