package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestFramesComeBackAsTheyWere(t *testing.T) {
	want := []Frame{
		{N: 7, Do: DoPut, Data: bytes.Repeat([]byte{0xff}, Chunk), More: true},
		{N: 8, Do: DoLaunch, Launch: &Launch{Command: []string{"sh"}, Env: map[string]string{"A": "b"}, Rows: 40}, Files: map[string][]byte{"key": {0, 1, 0xff}}},
		{N: 9, Do: DoLaunch, Launch: &Launch{}, Files: map[string][]byte{"most": bytes.Repeat([]byte{0xff}, MaxFiles)}},
		{Do: SayExit, Code: 137},
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, f := range want {
		if err := w.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range want {
		got, err := Read(&b)
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Fatalf("%+v %v, want %+v", got.Do, err, f.Do)
		}
	}
	if _, err := Read(&b); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestFrameLimits(t *testing.T) {
	if err := NewWriter(io.Discard).Send(Frame{Data: make([]byte, MaxFrame)}); err == nil {
		t.Error("a frame that is too long was sent")
	}
	long := binary.BigEndian.AppendUint32(nil, MaxFrame+1)
	if _, err := Read(bytes.NewReader(long)); err == nil || err == io.EOF {
		t.Errorf("a frame that is too long: %v", err)
	}
	cut := append(binary.BigEndian.AppendUint32(nil, 10), "{}"...)
	if _, err := Read(bytes.NewReader(cut)); err != io.ErrUnexpectedEOF {
		t.Errorf("a frame that was cut off: %v", err)
	}
}

// A held writer sends nothing: a guest that is saved is between two frames.
func TestHoldKeepsFramesBack(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := w.SendAndHold(Frame{N: 1}); err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = w.Send(Frame{N: 2, Name: "after"})
	}()
	if strings.Contains(b.String(), "after") {
		t.Error("a frame was sent while the writer was held")
	}
	w.Release()
	<-sent
	if !strings.Contains(b.String(), "after") {
		t.Error("the frame was lost")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = Read(bytes.NewReader(b))
	})
}
