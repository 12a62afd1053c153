package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"berth/terminal"
)

const (
	// flowBytes is how much the seat writes, and flowEnd its last bytes.
	flowBytes = 100 << 20
	flowEnd   = "<the end>"
	// flowMemory bounds what manager and viewer may take more meanwhile.
	flowMemory = 64 << 20
	sampleHeap = 20 * time.Millisecond
)

// flows is how fast one viewer gets what a seat writes as fast as it can,
// beside bare messages of the same size over the same server.
func (d *desk) flows(ctx context.Context) ([]Row, error) {
	size := min(int64(flowBytes), d.Export)
	var ptys, raws, sames, ours, shares []float64
	var grown float64
	for round := range d.Rounds {
		d.Progress(fmt.Sprintf("attach: %d bytes of output to one viewer", size))
		raw, err := d.bareFlow(ctx, size, nothing)
		if err != nil {
			return nil, err
		}
		alone, err := ptyFlow(size)
		if err != nil {
			return nil, err
		}
		var same float64
		var f flowed
		for side := range 2 {
			if (side+round)%2 == 0 {
				same, err = d.sameFlow(ctx, size)
			} else {
				f, err = d.flow(ctx, fmt.Sprintf("flow-%d", round), size)
			}
			if err != nil {
				return nil, err
			}
		}
		ptys, raws, sames = append(ptys, alone), append(raws, raw), append(sames, same)
		ours, shares = append(ours, f.rate), append(shares, f.share)
		grown = max(grown, f.grown)
	}
	return []Row{
		beside("attach-output", middle(ours), "MiB/s", middle(raws)).atLeast(0.5).
			noted("what reached the viewer of %d bytes that a seat wrote at once; raw is bare NATS messages of %d bytes", size, terminal.MaxFrame),
		beside("attach-output-same-program", middle(ours), "MiB/s", middle(sames)).atLeast(0.5).
			noted("the same; raw is the same program on a terminal of this process, whose output goes into the same bare messages"),
		beside("attach-output-of-pty", middle(ours), "MiB/s", middle(ptys)).noted("the same; raw is the seat's terminal alone, read by this process"),
		alone("attach-output-share", middle(shares), "of 1").noted("of the output that came as it was; the viewer was told of the rest and got the whole screen"),
		alone("attach-memory", grown/(1<<20), "MiB").atMost(flowMemory >> 20).noted("what the heap of manager and viewer grew by at most meanwhile"),
	}, nil
}

// flowing writes lines after the first key, as fast as it can.
func flowing(size int64) []string {
	line := "0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789 abcde"
	return []string{"sh", "-c", fmt.Sprintf(
		"stty raw -echo; printf ready; head -c 1 >/dev/null; yes '%s' | head -c %d; printf '%s'; exec sleep 3600", line, size, flowEnd)}
}

// ptyFlow is how fast a terminal alone gives the same: nothing over it can be
// faster.
func ptyFlow(size int64) (float64, error) {
	b, err := newBarePty(flowing(size))
	if err != nil {
		return 0, err
	}
	defer b.close()
	start := time.Now()
	if _, err := b.master.Write([]byte{'g'}); err != nil {
		return 0, err
	}
	buf := make([]byte, terminal.MaxFrame)
	for got := int64(0); got < size; {
		n, err := b.master.Read(buf)
		if err != nil {
			return 0, err
		}
		got += int64(n)
	}
	return float64(size) / (1 << 20) / time.Since(start).Seconds(), nil
}

// flowed is one transfer.
type flowed struct {
	rate  float64 // MiB of output that came, a second
	share float64 // of the output, 0 to 1
	grown float64 // bytes of heap
}

func (d *desk) flow(ctx context.Context, name string, size int64) (f flowed, err error) {
	l, err := d.terminalOf(ctx, name, flowing(size))
	if err != nil {
		return f, err
	}
	defer l.end()
	grown := heapGrowth()
	var came, missed int64
	var tail []byte
	start := time.Now()
	l.s.Type([]byte{'g'})
	err = l.reads(ctx, func(g terminal.Frame) bool {
		if g.Kind == terminal.KindDrop {
			missed += g.Bytes
		}
		came += int64(len(g.Data))
		tail = append(tail[max(0, len(tail)-len(flowEnd)):], g.Data...)
		return bytes.Contains(tail, []byte(flowEnd))
	})
	took := time.Since(start)
	f.grown = grown()
	if err != nil {
		return f, err
	}
	f.rate = float64(came) / (1 << 20) / took.Seconds()
	f.share = max(0, float64(size-missed)/float64(size))
	return f, nil
}

// sameFlow is the rate of bare messages that are filled by the program that
// ours shows, on a terminal of this process.
func (d *desk) sameFlow(ctx context.Context, size int64) (float64, error) {
	b, err := newBarePty(flowing(size))
	if err != nil {
		return 0, err
	}
	defer b.close()
	begun := false
	return d.bareFlow(ctx, size, func(into []byte) error {
		if !begun {
			begun = true
			if _, err := b.master.Write([]byte{'g'}); err != nil {
				return err
			}
		}
		_, err := io.ReadFull(b.master, into)
		return err
	})
}

// nothing leaves a message as it is.
func nothing([]byte) error { return nil }

// bareFlow is the rate of bare messages from one connection to another, in
// MiB a second. Each is filled before it is sent.
func (d *desk) bareFlow(ctx context.Context, size int64, fill func([]byte) error) (float64, error) {
	to, err := nats.Connect(d.server.Endpoint.NATS)
	if err != nil {
		return 0, err
	}
	defer to.Close()
	sub, err := to.SubscribeSync("bare.flow")
	if err != nil {
		return 0, err
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return 0, err
	}
	if err := to.Flush(); err != nil {
		return 0, err
	}
	body := bytes.Repeat([]byte{'x'}, terminal.MaxFrame)
	var sent error
	var wg sync.WaitGroup
	start := time.Now()
	wg.Go(func() {
		for left := size; left > 0 && sent == nil; left -= int64(len(body)) {
			part := body[:min(left, int64(len(body)))]
			if sent = fill(part); sent == nil {
				sent = d.nc.Publish("bare.flow", part)
			}
		}
	})
	for got := int64(0); got < size && err == nil; {
		wait, cancel := context.WithTimeout(ctx, attachFor)
		var m *nats.Msg
		if m, err = sub.NextMsgWithContext(wait); err == nil {
			got += int64(len(m.Data))
		}
		cancel()
	}
	took := time.Since(start)
	wg.Wait()
	if sent != nil {
		err = sent
	}
	return float64(size) / (1 << 20) / took.Seconds(), err
}

// heapGrowth watches this process; the answer is by how many bytes its live
// heap was larger than at first, at most.
func heapGrowth() (grown func() float64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() float64 {
		metrics.Read(sample)
		return float64(sample[0].Value.Uint64())
	}
	first := heap()
	most := first
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(sampleHeap)
		defer t.Stop()
		for {
			most = max(most, read())
			select {
			case <-stop:
				return
			case <-t.C:
			}
		}
	}()
	return func() float64 { close(stop); <-done; return most - first }
}
