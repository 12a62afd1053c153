package commands

import (
	"time"

	"berth/aggregates/intent"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// IntentAdmitInput lets one instance do one thing once (D1, D2).
type IntentAdmitInput struct {
	Named
	Intent   string      `json:"intent" doc:"id of the intent, and of the goal of its launch" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Kind     string      `json:"kind" doc:"launch the environment, or retire it" enum:"launch,retire"`
	Instance string      `json:"instance" doc:"id of the instance that may do it, in the run that it is in now" pattern:"^[a-z0-9]{26}$"`
	Within   string      `json:"within,omitzero" doc:"how long it may be used, at most 5m, which it is if absent"`
	Launch   *SpawnInput `json:"launch,omitzero" doc:"launch: the whole request; its name is the intent's"`
}

// Check implements Input.
func (in IntentAdmitInput) Check() error {
	if err := first(in.Named.Check(), checkIntent(in.Intent), checkInstance(in.Instance)); err != nil {
		return err
	}
	if _, err := in.Life(); err != nil {
		return err
	}
	switch events.IntentKind(in.Kind) {
	case events.IntentLaunch:
		if in.Launch == nil {
			return bad("launch", "a launch needs the whole request")
		}
		if in.UID != "" {
			return bad("uid", "a launch has no lifecycle yet")
		}
		if in.Launch.Name != "" && in.Launch.Name != in.Name || in.Launch.Goal != "" {
			return bad("launch", "its name and its goal are the intent's: leave them out")
		}
		return in.Launch.Check()
	case events.IntentRetire:
		if in.Launch != nil {
			return bad("launch", "a retirement launches nothing")
		}
		return nil
	}
	return bad("kind", "%q is neither launch nor retire", clip(in.Kind))
}

// Life is how long the intent may wait to be used.
func (in IntentAdmitInput) Life() (time.Duration, error) {
	if in.Within == "" {
		return intent.MaxLife, nil
	}
	return ParseDuration("within", in.Within, time.Second, intent.MaxLife)
}

// IntentUseInput has an instance do what an intent allows. It repeats what the
// instance knows of itself and of the intent; a difference is refused (D3).
type IntentUseInput struct {
	Named
	Intent   string `json:"intent" doc:"id of the intent" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Kind     string `json:"kind" doc:"what it allows" enum:"launch,retire"`
	Instance string `json:"instance" doc:"id of the instance that does it" pattern:"^[a-z0-9]{26}$"`
	Epoch    uint64 `json:"epoch" doc:"the run that the instance is in" max:"9007199254740991"`
	Grace    string `json:"grace,omitzero" doc:"retire: how long the seat may take to stop, such as 10s"`
}

// Check implements Input.
func (in IntentUseInput) Check() error {
	if err := first(in.Named.Check(), checkIntent(in.Intent), checkInstance(in.Instance)); err != nil {
		return err
	}
	if k := events.IntentKind(in.Kind); k != events.IntentLaunch && k != events.IntentRetire {
		return bad("kind", "%q is neither launch nor retire", clip(in.Kind))
	}
	if in.Epoch > events.MaxSafeInteger {
		return bad("epoch", "%d is not between 0 and %d", in.Epoch, uint64(events.MaxSafeInteger))
	}
	_, err := in.GraceFor()
	return err
}

// GraceFor is Grace as a duration, zero if none was given.
func (in IntentUseInput) GraceFor() (time.Duration, error) {
	return RetireInput{Grace: in.Grace}.GraceFor()
}

// IntentReleaseInput lets go of a name that a swept intent holds (D16).
type IntentReleaseInput struct {
	Named
	Intent string `json:"intent" doc:"id of the intent" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Reason string `json:"reason" doc:"why its executor is known to be over; history shows it for ever" maxLength:"512"`
}

// Check implements Input.
func (in IntentReleaseInput) Check() error {
	if in.Reason == "" {
		return bad("reason", "it is empty: say why, history shows it for ever")
	}
	return first(in.Named.Check(), checkIntent(in.Intent), checkText("reason", in.Reason, MaxReason))
}

func checkIntent(id string) error {
	if _, err := events.ParseGoalID(id); err != nil {
		return named("intent", err)
	}
	return checkText("intent", id, events.MaxName)
}

func checkInstance(id string) error {
	_, err := events.ParseInstanceID(id)
	return named("instance", err)
}

// IntentResult is an intent as it stands. It says nothing of what was launched:
// who uses an intent gains nothing by it (D18).
type IntentResult struct {
	Name  events.Alias `json:"name"`
	Owner events.Owner `json:"owner"`
	projections.Intent
	Sequence uint64 `json:"sequence"`
}

// IntentsResult is every intent that is remembered about a name, oldest first.
type IntentsResult struct {
	Items []projections.Intent `json:"items"`
	AsOf  uint64               `json:"asOf"`
}

// The commands of delegated intents.
var (
	Intents = command[Named, IntentsResult](Contract{
		Name: "intents", Kind: Read, Target: TargetAny, Modes: aboutOwner, Capability: CanRead,
		Doc: "The delegated intents about a name, and where each stands.", Example: `{"name":"demo"}`,
	})
	IntentAdmit = command[IntentAdmitInput, IntentResult](Contract{
		Name: "intent-admit", Kind: Write, Target: TargetAny, Modes: aboutOwner, Capability: CanSpawn,
		Doc:      "Let one instance launch or retire one environment once, in the caller's name (D1, D2).",
		Example:  `{"name":"demo","intent":"launch-1","kind":"launch","instance":"abcdefghijklmnopqrstuvwxyz","launch":{"provider":"process","ttl":"1h","command":["sh","-c","date"]}}`,
		Refusals: []fault.Code{fault.NotFound, fault.Conflict, fault.FailedPrecondition, fault.Expired},
	})
	IntentUse = command[IntentUseInput, IntentResult](Contract{
		Name: "intent-use", Kind: Write, Target: TargetHolder, Modes: aboutOwner, Capability: CanManage,
		Doc:      "Do what an intent allows, once; the same request again reads what became of it (D3-D15).",
		Example:  `{"name":"demo","intent":"launch-1","kind":"launch","instance":"abcdefghijklmnopqrstuvwxyz","epoch":1}`,
		Refusals: []fault.Code{fault.NotFound, fault.Conflict, fault.FailedPrecondition, fault.Expired},
	})
	IntentRelease = command[IntentReleaseInput, IntentResult](Contract{
		Name: "intent-release", Kind: Write, Target: TargetAny, Modes: aboutOwner, Capability: CanAdmin,
		Doc:      "Let go of a name whose intent ended after a sweep by another instance (D16).",
		Example:  `{"name":"demo","intent":"launch-1","reason":"its host was switched off"}`,
		Refusals: []fault.Code{fault.NotFound, fault.Conflict, fault.FailedPrecondition, fault.Expired},
	})
)
