// Package door is how a process inside a seat asks the manager for itself: over
// a unix socket that is shown in the seat, so that no network is needed, and by
// a signature with the seat's own credential, so that nobody is taken for
// another. Only the commands in mode self that every seat may ask pass it.
package door

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// Limits of one door.
const (
	// MaxConnections is how many are open at a time. One more takes the place of
	// the one that has asked nothing for longest; where all have asked, it is closed.
	MaxConnections = 64
	// patience is how long a peer may take to send its request.
	patience = 30 * time.Second
	// maxLine is the longest line of either side, in bytes.
	maxLine = commands.MaxReply + 64<<10
)

// greeting is the first line, from the manager: what the request is bound to.
type greeting struct {
	Version   string       `json:"version"`
	Space     events.Space `json:"space"`
	Owner     events.Owner `json:"owner"`
	Challenge string       `json:"challenge"` // used once
}

// version is of the protocol: one greeting, one request, one reply.
const version = "berth-door/v1"

// asking is the second line, from the seat.
type asking struct {
	Command   string          `json:"command"`
	Actor     events.Actor    `json:"actor"`
	UID       events.UID      `json:"uid"`
	Request   json.RawMessage `json:"request"` // a commands.Request
	Signature []byte          `json:"signature"`
}

// address is where the request would be sent on the wire.
func (g greeting) address(a asking) commands.Address {
	return commands.Address{Target: commands.Any, Command: a.Command, Mode: commands.ModeSelf, Caller: events.Caller{Owner: g.Owner, Actor: a.Actor, UID: a.UID}}
}

// signed is what the seat signs: this challenge, this address, this request.
func (g greeting) signed(a asking) []byte {
	return fmt.Appendf(nil, "%s\n%s\n%s\n%s", version, g.Challenge, g.address(a).Subject(g.Space), a.Request)
}

func writeLine(c net.Conn, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.Write(append(b, '\n'))
	return err
}

func readLine(r *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return fault.New(fault.BadRequest, "a line has more than %d bytes", maxLine)
		}
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(line, v)
	}
}
