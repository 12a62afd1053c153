package commands

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/connector"
	"berth/providers"
)

// SpawnInput asks for an environment. What it does not say has a default, see
// Plan. All of it is public text (decision 24).
type SpawnInput struct {
	Name     string            `json:"name,omitzero" doc:"name of the environment; one with the next number if absent" pattern:"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$"`
	Persona  string            `json:"persona,omitzero" doc:"defined persona; a name that is absent begins with it" pattern:"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,54}[A-Za-z0-9])?$"`
	Goal     string            `json:"goal,omitzero" doc:"id of the goal; the request's id if absent" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Provider string            `json:"provider,omitzero" doc:"registered provider; process if absent"`
	Image    *ImageInput       `json:"image,omitzero" doc:"what the environment is made from; the template host if absent"`
	CPUs     string            `json:"cpus,omitzero" doc:"exact decimal number of CPUs; 0.25 if absent"`
	Memory   string            `json:"memory,omitzero" doc:"size, a whole number of MiB; 128MiB if absent"`
	Disk     string            `json:"disk,omitzero" doc:"size, a whole number of GiB; not limited by Berth if absent"`
	Network  *string           `json:"network,omitzero" doc:"network of the provider; its default if absent (R22)"`
	TTL      string            `json:"ttl,omitzero" doc:"lifetime from acceptance, such as 1h; 1h if absent, none for no deadline"`
	Ready    string            `json:"ready,omitzero" doc:"readiness deadline, such as 2m; 2m if absent"`
	Command  []string          `json:"command,omitzero" doc:"command line of the seat" maxItems:"256"`
	Options  map[string]string `json:"options,omitzero" doc:"selection data for the provider, never secrets (R88)"`
	Needs    *NeedsInput       `json:"needs,omitzero" doc:"what the instance must have; any if absent"`
	// Resume is the claim on a transcript, which this spawn uses up.
	Resume       string `json:"resume,omitzero" doc:"claim on a transcript that the seat goes on from; this spawn uses it up" pattern:"^[a-z2-7]{26}$"`
	ResumeSource string `json:"resumeSource,omitzero" doc:"the session that is meant; a claim on another's transcript is refused" maxLength:"128"`
	Connector    string `json:"connector,omitzero" doc:"declared harness: exec, shell or acp; a plain command if absent" enum:"exec,shell,acp"`
	Sign         string `json:"sign,omitzero" doc:"how the seat shows that it is ready: started, fd, pattern:REGEX or port:N; the connector's own way if absent" maxLength:"264"`
	Prompt       string `json:"prompt,omitzero" doc:"what the harness is asked first; public text of several lines" maxLength:"16384"`
	Delegated    bool   `json:"delegated,omitzero" doc:"the seat begins with a hand-off, which the command takes from a pipe (H1)"`
}

// ImageInput is exactly one reference (R13).
type ImageInput struct {
	Kind      string `json:"kind" doc:"template or oci" enum:"template,oci"`
	Reference string `json:"reference" doc:"name of the template, or path of an OCI layout or archive"`
}

// NoTTL is the TTL of an environment that ends only when it is retired.
const NoTTL = "none"

// Check implements Input.
func (in SpawnInput) Check() error {
	if in.Name != "" {
		if err := (Named{Name: in.Name}).Check(); err != nil {
			return err
		}
	}
	if in.Persona != "" {
		if err := checkPersona("persona", in.Persona); err != nil {
			return err
		}
	}
	if err := first(checkGoal(in.Goal), in.Needs.Check(), in.checkResume(), in.checkConnector()); err != nil {
		return err
	}
	if _, err := in.ReadyFor(); err != nil {
		return err
	}
	plan, err := in.Plan()
	if err != nil {
		return err
	}
	return checkPlan(plan)
}

// Base is what a name that nobody chose begins with.
func (in SpawnInput) Base() events.Alias { return events.Alias(or(in.Persona, DefaultBase)) }

// ReadyFor is how long the spawn may take before its goal is uncertain.
func (in SpawnInput) ReadyFor() (time.Duration, error) {
	if in.Ready == "" {
		if row, err := connector.Find(in.Connector); err == nil {
			return row.Window, nil // what it declares
		}
		return DefaultReady, nil
	}
	return ParseDuration("ready", in.Ready, MinReady, MaxReady)
}

// ProviderName is the provider that is meant.
func (in SpawnInput) ProviderName() string { return or(in.Provider, DefaultProvider) }

// Complete says that no provider's defaults matter to the input.
func (in SpawnInput) Complete() bool { return in.Image != nil && in.CPUs != "" && in.Memory != "" }

// Filled is the input with a provider's own defaults where it does not say.
func (in SpawnInput) Filled(d providers.Defaults) SpawnInput {
	if in.Image == nil && d.Image != nil {
		in.Image = &ImageInput{Kind: d.Image.Kind, Reference: d.Image.Reference}
	}
	in.CPUs, in.Memory = or(in.CPUs, d.CPUs), or(in.Memory, d.Memory)
	return in
}

// Plan is what was asked for, with every default filled in.
func (in SpawnInput) Plan() (events.Plan, error) {
	p := events.Plan{
		Provider: in.ProviderName(), Image: events.Image{Kind: DefaultImageKind, Reference: DefaultImage},
		Network: in.Network, Command: in.Command, Options: in.Options, Lifetime: DefaultLifetime,
		Delegated: in.Delegated, Connector: in.connector(),
	}
	if in.Image != nil {
		p.Image = events.Image{Kind: in.Image.Kind, Reference: in.Image.Reference}
	}
	var err error
	if p.Resources.CPUs, err = parseCPUs("cpus", or(in.CPUs, DefaultCPUs)); err != nil {
		return p, err
	}
	if p.Resources.MemoryMiB, err = whole("memory", or(in.Memory, DefaultMemory), 1<<20, MaxMemory); err != nil {
		return p, err
	}
	if in.Disk != "" {
		if p.Resources.DiskGiB, err = whole("disk", in.Disk, 1<<30, MaxDisk); err != nil {
			return p, err
		}
	}
	switch in.TTL {
	case "":
	case NoTTL:
		p.Lifetime = 0
	default:
		p.Lifetime, err = ParseDuration("ttl", in.TTL, MinLifetime, MaxLifetime)
	}
	return p, err
}

func checkPlan(p events.Plan) error {
	if _, err := events.ParseActor(p.Provider); err != nil {
		return bad("provider", "%q is not the name of a provider", clip(p.Provider))
	}
	if p.Image.Kind != "template" && p.Image.Kind != "oci" {
		return bad("image.kind", "%q is neither template nor oci", clip(p.Image.Kind))
	}
	if p.Image.Reference == "" {
		return bad("image.reference", "it is empty")
	}
	if err := checkText("image.reference", p.Image.Reference, events.MaxText); err != nil {
		return err
	}
	if p.Network != nil {
		if *p.Network == "" {
			return bad("network", "it is empty; leave it out for the provider's default")
		}
		if err := checkText("network", *p.Network, events.MaxText); err != nil {
			return err
		}
	}
	return first(checkCommand(p.Command), checkOptions(p.Options))
}

// checkCommand accepts a command line: public text, bounded, and without what
// looks like a secret, word by word and as a whole.
func checkCommand(words []string) error {
	if len(words) > MaxArguments {
		return bad("command", "it has %d words; at most %d are possible", len(words), MaxArguments)
	}
	total := 0
	for i, w := range words {
		field := "command." + strconv.Itoa(i)
		total += len(w)
		if i == 0 && w == "" {
			return bad(field, "the program to run is empty")
		}
		if w == "" {
			continue // an empty argument is an argument
		}
		if err := events.CheckTextMulti(field, w); err != nil {
			f := fault.From(err)
			return bad(field, "%s", f.Message).WithHint("%s", f.Hint)
		}
	}
	if total > MaxCommandLine {
		return bad("command", "it has %d bytes; at most %d are possible", total, MaxCommandLine)
	}
	if line := strings.Join(words, " "); len(words) > 1 && len(line) <= events.MaxText && line != "" {
		// `--token abc` is only seen in the whole line; its words alone are not.
		if err := events.CheckTextMulti("command", strings.ReplaceAll(line, "--", "")); err != nil {
			f := fault.From(err)
			return bad("command", "%s", f.Message).WithHint("%s", f.Hint)
		}
	}
	return nil
}

// ownField are names that say what a field of the plan says: an image or a
// network must not hide in the options (R21, R22).
var ownField = map[string]string{
	"image": "image", "template": "image", "imageref": "image", "templateref": "image", "image-ref": "image", "template-ref": "image", "network": "network",
}

func checkOptions(options map[string]string) error {
	if len(options) > MaxOptions {
		return bad("options", "there are %d; at most %d are possible", len(options), MaxOptions)
	}
	total := 0
	for _, k := range slices.Sorted(maps.Keys(options)) {
		v := options[k]
		total += len(k) + len(v)
		if k == "" {
			return bad("options", "a name is empty")
		}
		if field, ok := ownField[strings.ToLower(k)]; ok {
			return bad("options."+k, "it has a field of its own: %s", field)
		}
		if err := checkText("options", k, MaxOptionName); err != nil {
			return err
		}
		if v == "" {
			continue
		}
		// Name and value together are judged: {"token": "x"} is a secret, x is not.
		if err := first(checkText("options."+k, v, events.MaxText), checkText("options."+k, k+"="+v, events.MaxText+MaxOptionName)); err != nil {
			return err
		}
	}
	if total > MaxOptionBytes {
		return bad("options", "they have %d bytes; at most %d are possible", total, MaxOptionBytes)
	}
	return nil
}

func or(s, d string) string {
	if s == "" {
		return d
	}
	return s
}
