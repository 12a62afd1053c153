package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"berth/events/fault"
)

// chunk is how many bytes of an object one message carries.
const chunk = 128 << 10

// Subjects are what a sender may publish to, and all that it may: it asks
// JetStream for nothing, so that it can neither read nor remove what is there.
func Subjects(bucket string) []string {
	return []string{"$O." + bucket + ".C.*", "$O." + bucket + ".M.*"}
}

// Send puts an object into the bucket of an instance, as the client library's
// object store would. What it wrote of an object that it did not end is nothing
// yet, and goes with KeepFor.
func Send(ctx context.Context, nc *nats.Conn, bucket, object string, from io.Reader) error {
	id := nuid.Next()
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: object, Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunk}}, Bucket: bucket, NUID: id, ModTime: time.Time{},
	}
	sum, b := sha256.New(), make([]byte, chunk)
	for {
		n, err := io.ReadFull(from, b)
		if n > 0 {
			sum.Write(b[:n])
			info.Size, info.Chunks = info.Size+uint64(n), info.Chunks+1
			if err := put(ctx, nc, nats.NewMsg("$O."+bucket+".C."+id), b[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return fault.New(fault.BadRequest, "what is sent can't be read: %s", err)
		}
	}
	info.Digest = "SHA-256=" + base64.URLEncoding.EncodeToString(sum.Sum(nil))
	body, err := json.Marshal(info)
	if err != nil {
		return said("can't be written", err)
	}
	m := nats.NewMsg("$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(object)))
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	return put(ctx, nc, m, body)
}

// put stores one message, or says why it is not known to be stored.
func put(ctx context.Context, nc *nats.Conn, m *nats.Msg, data []byte) error {
	m.Data = data
	r, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return said("does not answer", err)
	}
	var ack struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(r.Data, &ack); err != nil {
		return said("gave no answer of the kind", err)
	}
	if ack.Error != nil {
		return said("takes no more", errors.New(ack.Error.Description))
	}
	return nil
}
