//go:build linux

package custodian

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"berth/providers/process/seatdir"
)

func TestOutputIsBoundedAndKeepsItsOffsets(t *testing.T) {
	d := seatdir.Dir{Path: t.TempDir()}
	o, err := newOutput(d)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 64<<10-1) + "\n")
	total := int64(0)
	for total < (Segments+2)*SegmentBytes {
		_, _ = o.Write(line)
		total += int64(len(line))
	}
	segs, err := listSegments(d.File(seatdir.DirOutput))
	if err != nil || len(segs) != Segments {
		t.Fatalf("%d segments, %v", len(segs), err)
	}
	for _, s := range segs {
		if s.length > SegmentBytes+int64(len(line)) {
			t.Fatalf("a segment of %d bytes", s.length)
		}
	}
	if from, next := o.span(); next != total || total-from > 2*RingBytes+int64(len(line)) || total-from < RingBytes {
		t.Fatalf("the ring is from %d to %d of %d", from, next, total)
	}
	var b bytes.Buffer
	next, err := ReadOutput(d, 0, &b)
	if err != nil || next != total || int64(b.Len()) != total-segs[0].from {
		t.Fatalf("read %d bytes up to %d, %v", b.Len(), next, err)
	}
	b.Reset()
	if next, err = ReadOutput(d, total-3, &b); err != nil || next != total || b.String() != "xx\n" {
		t.Fatalf("the last bytes are %q up to %d, %v", b.String(), next, err)
	}
	if next, err = ReadOutput(d, total, &b); err != nil || next != total {
		t.Fatalf("at the end: %d, %v", next, err)
	}
	o.close()

	// Another start of the same seat goes on with the offsets.
	again, err := newOutput(d)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = again.Write([]byte("more"))
	again.close()
	b.Reset()
	if next, err = ReadOutput(d, total, &b); err != nil || next != total+4 || b.String() != "more" {
		t.Fatalf("after another start: %q up to %d, %v", b.String(), next, err)
	}
}

// A full disk costs kept output and nothing else; what comes later is kept at
// its true offset.
func TestOutputWithoutADisk(t *testing.T) {
	d := seatdir.Dir{Path: t.TempDir()}
	o, err := newOutput(d)
	if err != nil {
		t.Fatal(err)
	}
	dir := d.File(seatdir.DirOutput)
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	_, _ = o.Write([]byte("lost"))
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	_, _ = o.Write([]byte("kept"))
	o.close()
	var b bytes.Buffer
	if next, err := ReadOutput(d, 0, &b); err != nil || next != 8 || b.String() != "kept" {
		t.Fatalf("%q up to %d, %v", b.String(), next, err)
	}
	b.Reset()
	if err := o.copyTo(&follower{Writer: &b}, 0); err != nil || b.String() != "lostkept" {
		t.Fatalf("the ring gave %q, %v", b.String(), err)
	}
}

func TestCopyToTellsOfWhatIsGone(t *testing.T) {
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 * RingBytes / 1024 {
		_, _ = fmt.Fprintf(o, "%1024d", i)
	}
	o.close()
	if err := o.copyTo(&follower{Writer: &bytes.Buffer{}}, 0); err == nil {
		t.Fatal("bytes that are gone were served")
	}
}
