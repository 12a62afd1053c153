package cli

import (
	"time"

	"berth/commands"
)

// readConnector turns the flags about the connector into the input. Before
// there were signs --ready was the deadline: a duration still is.
func (f *spawnFlags) readConnector(a *app) (err error) {
	if _, notDuration := time.ParseDuration(f.ready); notDuration == nil {
		if f.in.Ready != "" {
			return usage("--ready and --ready-within both give a deadline")
		}
		f.in.Ready, f.ready = f.ready, ""
	}
	f.in.Sign = f.ready
	if f.promptFile == "" {
		return nil
	}
	if f.in.Prompt != "" {
		return usage("--prompt and --prompt-file both give a prompt")
	}
	f.in.Prompt, err = a.textOf("--prompt-file", f.promptFile, commands.MaxPrompt)
	return err
}
