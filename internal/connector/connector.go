// Package connector is the declared table of what may run in a seat: for each
// harness its command line, the sign by which it shows that it is ready, how
// long that may take, and how it is given a prompt. A connector says nothing
// of policy: what a seat may do is decided elsewhere.
package connector

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/acp"
)

// The names of the connectors.
const (
	Exec  = "exec"
	Shell = "shell"
	ACP   = "acp"
)

// Row is one connector as it is declared.
type Row struct {
	Name string
	Doc  string // what it is, one line
	// Takes says what the command line of a spawn is to it.
	Takes Takes
	// Sign is how it shows that it is ready, where a spawn does not say
	// otherwise; nil: its process runs.
	Sign *events.ReadySign
	// OwnSign says that no other sign would mean anything.
	OwnSign bool
	// Window is the time that it declares for becoming ready (2.6), where a
	// spawn does not say otherwise.
	Window time.Duration
	Prompt string // how a prompt reaches it, for documentation
	Resume string // how it takes an earlier session up, for documentation
	// Exits are the exit codes by which it says why it did not become ready.
	Exits []Exit
	// Binaries are what it needs to find on the host, besides what it is told
	// to run.
	Binaries []string
	// wrap makes the seat's command line of the one that was given.
	wrap func(command []string) []string
}

// Exit is what an exit code of a connector means, in public text.
type Exit struct {
	Code    int
	Meaning string
}

// Takes says what a connector does with a command line.
type Takes string

// What a connector takes.
const (
	TakesAny  Takes = "any"  // runs it as it is
	TakesNone Takes = "none" // has its own
	TakesOne  Takes = "one"  // talks to it, and has no other
)

// Where a program in the seat finds them.
const (
	promptPath  = "$" + events.EnvMaterial + "/" + events.FilePrompt
	personaPath = "$" + events.EnvMaterial + "/" + events.FilePersona
)

// shellScript runs the prompt, says that it is ready, and hands the terminal
// over. A seat that shows no sign has no descriptor for it, which is no fault.
const shellScript = `if [ -f "` + promptPath + `" ]; then . "` + promptPath + `"; fi
{ echo ready >&3; } 2>/dev/null
exec 3>&-
exec sh -i`

// Table has a row for every connector.
var Table = []Row{
	{
		Name: Exec, Doc: "any program, as it is given", Takes: TakesAny, Window: 2 * time.Minute,
		Prompt: "the program reads " + promptPath + " and " + personaPath, Resume: "the program's own affair: its home is kept",
		wrap: func(command []string) []string { return command },
	},
	{
		Name: Shell, Doc: "an interactive shell", Takes: TakesNone, Sign: &events.ReadySign{Kind: events.SignFD}, Window: 30 * time.Second,
		Prompt: "it runs the prompt as commands before it is ready", Resume: "none: a new shell in the same home", Binaries: []string{"sh"},
		wrap: func([]string) []string { return []string{"sh", "-c", shellScript} },
	},
	{
		// It runs as this program, which only seats of the providers process and
		// qemu have with them: by its sign it is refused elsewhere.
		Name: ACP, Doc: "an agent that speaks the Agent Client Protocol", Takes: TakesOne, Sign: &events.ReadySign{Kind: events.SignFD}, OwnSign: true, Window: 2 * time.Minute,
		Prompt: "it is the agent's first prompt, after the persona; what is typed at the terminal follows", Resume: "the agent's session, where it can load one: the home remembers which",
		Exits: []Exit{
			{acp.ExitNoAgent, "the agent could not be started"},
			{acp.ExitVersion, "the agent does not speak version 1 of the protocol"},
			{acp.ExitLogin, "the agent wants a login first: log in with its own command in the same home"},
			{acp.ExitNoSession, "the agent did not begin a session, or ended"},
		},
		wrap: func(command []string) []string { return append([]string{acp.Program, acp.Role}, command...) },
	},
}

// Names lists the connectors, in the order of the table.
func Names() []string {
	var names []string
	for _, r := range Table {
		names = append(names, r.Name)
	}
	return names
}

// Find is the row of a name; bad-request lists those that there are.
func Find(name string) (Row, error) {
	if i := slices.IndexFunc(Table, func(r Row) bool { return r.Name == name }); i >= 0 {
		return Table[i], nil
	}
	return Row{}, fault.New(fault.BadRequest, "there is no connector %q; there are: %s", events.Scrub(name), strings.Join(Names(), ", "))
}

// Meaning is what an exit code of a connector means; empty: nothing is declared.
func Meaning(name string, code int) string {
	row, err := Find(name)
	if err != nil {
		return ""
	}
	if i := slices.IndexFunc(row.Exits, func(e Exit) bool { return e.Code == code }); i >= 0 {
		return row.Exits[i].Meaning
	}
	return ""
}

// CheckCommand refuses, with bad-request, a command line that the connector
// has no use for.
func (r Row) CheckCommand(command []string) error {
	switch {
	case r.Takes == TakesNone && len(command) > 0:
		return fault.New(fault.BadRequest, "connector %s has a command line of its own", r.Name).WithHint("leave it out, or take connector %s", Exec)
	case r.Takes == TakesOne && len(command) == 0:
		return fault.New(fault.BadRequest, "connector %s needs the command of an agent", r.Name).WithHint("give it after --")
	}
	return nil
}

// CheckSign refuses, with bad-request, a sign that was asked for beside the only
// one that means anything.
func (r Row) CheckSign(sign string) error {
	if r.OwnSign && sign != "" {
		return fault.New(fault.BadRequest, "connector %s shows by itself that it is ready", r.Name).WithHint("leave the sign out")
	}
	return nil
}

// Command is the command line of the seat.
func (r Row) Command(command []string) []string { return r.wrap(command) }

// Given is the command line that Command made the seat's of.
func (r Row) Given(command []string) []string {
	if r.Takes == TakesNone {
		return nil
	}
	return command[min(len(r.wrap(nil)), len(command)):]
}

// SignStarted is the word for no sign: ready when the process has started.
const SignStarted = "started"

// FormatSign is a sign as ParseSign reads it.
func FormatSign(s *events.ReadySign) string {
	switch {
	case s == nil:
		return SignStarted
	case s.Kind == events.SignPattern:
		return string(s.Kind) + ":" + s.Pattern
	case s.Kind == events.SignPort:
		return string(s.Kind) + ":" + strconv.Itoa(s.Port)
	}
	return string(s.Kind)
}

// ParseSign reads a sign as people write it: fd, pattern:REGEX, port:N, or
// started, which is nil. Anything else is bad-request.
func ParseSign(s string) (*events.ReadySign, error) {
	kind, rest, given := strings.Cut(s, ":")
	sign := events.ReadySign{Kind: events.SignKind(kind)}
	switch {
	case s == SignStarted:
		return nil, nil
	case kind == string(events.SignFD) && !given:
		return &sign, nil
	case kind == string(events.SignPattern) && given:
		sign.Pattern = rest
	case kind == string(events.SignPort) && given:
		n, err := strconv.Atoi(rest)
		if err != nil {
			return nil, fault.New(fault.BadRequest, "readiness: a port is a number from 1 to 65535")
		}
		sign.Port = n
	default:
		return nil, fault.New(fault.BadRequest, "readiness: %q is neither started nor fd nor pattern:REGEX nor port:N", events.Scrub(s))
	}
	if err := sign.Check(); err != nil {
		return nil, err
	}
	return &sign, nil
}
