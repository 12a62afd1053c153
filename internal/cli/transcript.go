package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/commands/client"
	"berth/commands/transfer"
	"berth/events"
	"berth/events/fault"
)

func (a *app) transcriptCommand() *cobra.Command {
	c := &cobra.Command{Use: "transcript", Short: "Bring the transcript of a session to a manager, for a seat to go on from", Args: group, RunE: showHelp,
		Example: "  berth transcript send session.jsonl\n  berth spawn demo --resume CLAIM -- my-agent"}
	var in commands.TranscriptInput
	var on, goal string
	send := &cobra.Command{
		Use: "send FILE", Short: "Send a transcript and print the claim on it", Args: args("FILE"),
		Long: fmt.Sprintf(`Send a transcript of at most %d MiB to a manager, and print the claim on it. The bytes go
through the manager's own bucket, never in a request, and are checked there by length and
digest. The claim is good for one spawn of the same caller at the same instance, for ten
minutes; --resume gives the file to the seat, which finds its path in %s.
With - it is read from standard input.`, commands.MaxTranscript>>20, "BERTH_RESUME_TRANSCRIPT"),
		Example: "  berth transcript send session.jsonl --source session-7 --title 'the parser'",
		RunE: func(c *cobra.Command, words []string) error {
			return a.sendTranscript(c.Context(), words[0], in, events.InstanceID(on), events.CommandID(goal))
		},
	}
	fl := send.Flags()
	fl.StringVar(&in.Source, "source", "", "the session that it is of (default: the name of the file)")
	fl.StringVar(&in.SourceHost, "source-host", "", "where that session was (default: this host)")
	fl.StringVar(&in.Title, "title", "", "what a person calls it")
	fl.StringVar(&on, "on", "", "id of the instance that is to have it; any if absent")
	fl.StringVar(&goal, "id", "", "id of the request: the same id with the same transcript is the same claim")
	c.AddCommand(send)
	return c
}

// sendTranscript asks where to put the bytes, puts them there, and asks again.
func (a *app) sendTranscript(ctx context.Context, file string, in commands.TranscriptInput, on events.InstanceID, id events.CommandID) error {
	b, err := a.contentsOf("the transcript", file, commands.MaxTranscript)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return usage("%s is empty", clip(file))
	}
	sum := sha256.Sum256(b)
	in.SHA256, in.Size = hex.EncodeToString(sum[:]), int64(len(b))
	if in.Source == "" {
		in.Source = filepath.Base(file)
	}
	if in.SourceHost == "" {
		if in.SourceHost, err = os.Hostname(); err != nil || in.SourceHost == "" {
			in.SourceHost = "unknown"
		}
	}
	if err := in.Check(); err != nil {
		return err
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	l, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	options := append(a.callOptions(), client.WithInstance(on))
	if id != "" {
		options = append(options, client.WithID(id))
	}
	r, err := client.Call(ctx, l.Client, commands.TranscriptReceive, in, options...)
	if err == nil && r.State == commands.TranscriptUpload {
		if err := transfer.Send(ctx, l.Conn(), r.Bucket, r.Object, bytes.NewReader(b)); err != nil {
			return err
		}
		r, err = client.Call(ctx, l.Client, commands.TranscriptReceive, in, append(options, client.WithInstance(r.InstanceID))...)
	}
	switch {
	case err != nil:
		return err
	case r.State != commands.TranscriptStaged:
		return fault.New(fault.Unavailable, "the transcript was sent, and the instance does not find it").WithOutcome(fault.NotExecuted).WithHint("send it again")
	}
	return a.show(r, func(w io.Writer) {
		fmt.Fprintf(w, "claim %s, good for one spawn until %s\nnext: berth spawn NAME --resume %s -- COMMAND\n", r.Claim, r.Expires, r.Claim)
	})
}
