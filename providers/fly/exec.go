package fly

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/adapter"
)

// Limits of what goes through exec, in bytes.
const (
	MaxMaterialBytes = 64 << 10
	MaxCaptureBytes  = 16 << 20
	chunkBytes       = 512 << 10
	execSeconds      = 60
)

// Places in the machine, and how long the gate waits to be opened.
const (
	home        = "/home/seat"
	runDir      = "/run/berth"
	materialDir = runDir + "/material"
	gateSeconds = 120
)

// gate is the machine's first program: it waits for the material and becomes
// the seat. It shuts for ever after gateSeconds, so that a start which was
// never finished ends by itself. The root disk is new at every start.
func gate(command []string) []string {
	return append([]string{"/bin/sh", "-c", fmt.Sprintf(
		`rm -f %[1]s/go; i=0; until [ -e %[1]s/go ]; do i=$((i+1)); [ $i -gt %[2]d ] && exit 78; sleep 1; done; exec "$@"`, runDir, gateSeconds), "berth"}, command...)
}

func goneBy(op events.OperationID) string { return runDir + "/go-" + string(op) }

// openGate unpacks the material from standard input and lets the seat begin.
func openGate(op events.OperationID) string {
	return fmt.Sprintf("mkdir -p %[1]s %[2]s /workspace && chmod 777 %[2]s /workspace && base64 -d | tar -C %[1]s -xf - && : > %[3]s && : > %[4]s/go",
		materialDir, home, goneBy(op), runDir)
}

// pack is the material as a tar, which goes through standard input only (R55).
func pack(m providers.Material) ([]byte, error) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	total := 0
	for _, name := range slices.Sorted(maps.Keys(m)) {
		total += len(m[name])
		if _, err := events.ParseActor(name); err != nil || total > MaxMaterialBytes {
			return nil, fault.New(fault.BadRequest, "material %q: plain names, and at most %d bytes in all", events.Scrub(name), MaxMaterialBytes)
		}
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o444, Size: int64(len(m[name]))}); err != nil {
			return nil, fault.New(fault.BadRequest, "material %q can't be packed", events.Scrub(name))
		}
		if _, err := tw.Write(m[name]); err != nil {
			return nil, fault.New(fault.BadRequest, "material %q can't be packed", events.Scrub(name))
		}
	}
	if err := tw.Close(); err != nil {
		return nil, fault.New(fault.BadRequest, "the material can't be packed")
	}
	return buf.Bytes(), nil
}

// exec runs a script in the machine, with in as base64 on its standard input,
// and returns its output. What the script wrote to its error stream is not
// repeated: it may hold anything.
func (b *backend) exec(ctx context.Context, m machine, script string, in []byte) (string, error) {
	var out struct {
		ExitCode int    `json:"exit_code"`
		Stdout   string `json:"stdout"`
	}
	req := map[string]any{"cmd": "sh -c '" + strings.ReplaceAll(script, "'", `'\''`) + "'", "timeout": execSeconds}
	if in != nil {
		req["stdin"] = base64.StdEncoding.EncodeToString(in)
	}
	if err := b.c.do(ctx, request{method: http.MethodPost, path: "/machines/" + m.ID + "/exec", in: req, out: &out}); err != nil {
		return "", err
	}
	if out.ExitCode != 0 {
		return "", fault.New(fault.FailedPrecondition, "a script in machine %s ended with %d; its image needs sh, tar, base64, dd, wc and sha256sum", m.ID, out.ExitCode)
	}
	return out.Stdout, nil
}

// Capture archives the plan's directory inside of the machine and reads it in
// pieces, each by one exec, at the pace that the API's limit asks for. The
// digest that the machine computed must be that of what arrived (R37).
func (b *backend) Capture(ctx context.Context, c *adapter.Call, w io.Writer) error {
	m, err := b.inspect(ctx, c.Record)
	if err != nil {
		return notSent(err)
	}
	if m.facts().State != events.StateRunning {
		return fault.New(fault.FailedPrecondition, "environment %s is %s: only a running machine can be copied", c.Op.Environment, events.Scrub(m.State))
	}
	dir, err := captureDir(c.Record.Plan)
	if err != nil {
		return err
	}
	file := runDir + "/capture-" + string(c.Op.ID) + ".tar"
	said, err := b.exec(ctx, m, fmt.Sprintf("mkdir -p %[1]s && tar -C %[1]s -cf %[2]s . && wc -c < %[2]s && sha256sum < %[2]s", dir, file), nil)
	if err != nil {
		return notSent(err) // whatever it did in the machine, no checkpoint came of it
	}
	fields := strings.Fields(said)
	length, sum := int64(-1), ""
	if len(fields) >= 2 {
		length, err = strconv.ParseInt(fields[0], 10, 64)
		sum = fields[1]
	}
	if err != nil || length < 0 || len(sum) != 64 {
		return fault.New(fault.FailedPrecondition, "machine %s did not say how long the archive is", m.ID)
	}
	if length > MaxCaptureBytes {
		return fault.New(fault.ResourceExhausted, "%s of environment %s has %d bytes archived; exec carries at most %d", dir, c.Op.Environment, length, MaxCaptureBytes)
	}
	h := sha256.New()
	if err := b.read(ctx, m, file, length, io.MultiWriter(w, h)); err != nil {
		return notSent(err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return fault.New(fault.FailedPrecondition, "the archive arrived with another SHA-256 than machine %s computed", m.ID)
	}
	// Best effort: the disk is gone with the next stop.
	_, _ = b.exec(ctx, m, "rm -f "+file, nil)
	return nil
}

func (b *backend) read(ctx context.Context, m machine, file string, length int64, w io.Writer) error {
	for i, done := int64(0), int64(0); done < length; i++ {
		if err := b.pace(ctx); err != nil {
			return err
		}
		out, err := b.exec(ctx, m, fmt.Sprintf("dd if=%s bs=%d skip=%d count=1 2>/dev/null | base64", file, chunkBytes, i), nil)
		if err != nil {
			return err
		}
		piece, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(out), ""))
		if err != nil || int64(len(piece)) != min(chunkBytes, length-done) {
			return fault.New(fault.FailedPrecondition, "piece %d of the archive in machine %s came damaged", i, m.ID)
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
		done += int64(len(piece))
	}
	return nil
}

func (b *backend) pace(ctx context.Context) error {
	if b.cfg.Pace < 0 {
		return ctx.Err()
	}
	t := time.NewTimer(b.cfg.Pace)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
