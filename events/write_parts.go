package events

import (
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"berth/events/fault"
)

// larger is writeEvent for the types with much in them, and for failures.
func (w *writer) larger(e Event) {
	switch e := e.(type) {
	case SlotClaimed:
		w.slotClaimed(&e)
	case EnvironmentProbed:
		w.environmentProbed(&e)
	case EnvironmentRefused:
		w.environment(e.Environment)
		w.fault(`,"fault":`, e.Fault)
		w.bad = w.bad || len(e.Checks) > 0
	case OperationRefused:
		w.environmentOperation(e.Environment, e.Operation)
		w.fault(`,"fault":`, e.Fault)
	case OperationUncertain:
		w.environmentOperation(e.Environment, e.Operation)
		w.fault(`,"fault":`, e.Fault)
	case GoalAccepted:
		w.goalAccepted(&e)
	case GoalEnded:
		w.text(`{"state":`, string(e.State))
		if e.Fault != nil {
			w.fault(`,"fault":`, e.Fault)
		}
		if len(e.Result) > 0 {
			w.value(`,"result":`, e.Result)
		}
	default:
		w.bad = true
	}
}

func (w *writer) slotClaimed(e *SlotClaimed) {
	w.uid(e.UID)
	w.text(`,"environment":`, string(e.Environment))
	w.textIf(`,"goal":`, e.Goal)
	w.text(`,"holder":`, string(e.Holder))
	w.plan(&e.Plan)
	w.text(`,"target":`, string(e.Target))
	w.timeOrNull(`,"deadline":`, e.Deadline)
	w.time(`,"ready":`, e.Ready)
}

func (w *writer) plan(p *Plan) {
	w.text(`,"plan":{"provider":`, p.Provider)
	w.image(`,"image":`, p.Image)
	w.text(`,"resources":{"cpus":`, p.Resources.CPUs.String())
	w.integer(`,"memoryMiB":`, p.Resources.MemoryMiB)
	w.numberIf(`,"diskGiB":`, p.Resources.DiskGiB)
	w.b = append(w.b, `},"network":`...)
	if p.Network == nil {
		w.b = append(w.b, `null`...)
	} else {
		w.text("", *p.Network)
	}
	w.integer(`,"lifetime":`, int64(p.Lifetime))
	w.list(`,"command":`, len(p.Command), p.Command == nil, func(i int) { w.text("", p.Command[i]) })
	w.bad = w.bad || len(p.Options) > 0 || p.Resume != nil || p.Connector != nil // in the library's order
	if p.Delegated {
		w.b = append(w.b, `,"delegated":true`...)
	}
	w.b = append(w.b, '}')
}

func (w *writer) image(name string, i Image) {
	w.b = append(w.b, name...)
	w.text(`{"kind":`, i.Kind)
	w.text(`,"reference":`, i.Reference)
	w.b = append(w.b, '}')
}

func (w *writer) environmentProbed(e *EnvironmentProbed) {
	w.environment(e.Environment)
	w.image(`,"image":{"image":`, e.Image.Image)
	w.textIf(`,"digest":`, e.Image.Digest)
	w.text(`,"architecture":`, e.Image.Architecture)
	w.textIf(`,"abi":`, e.Image.ABI)
	w.textIf(`,"bundleSha256":`, e.Image.BundleSHA256)
	w.b = append(w.b, '}')
	w.textIf(`,"network":`, e.Network)
	w.list(`,"checks":`, len(e.Checks), e.Checks == nil, func(i int) {
		w.text(`{"name":`, e.Checks[i].Name)
		w.boolean(`,"ok":`, e.Checks[i].OK)
		w.textIf(`,"detail":`, e.Checks[i].Detail)
		w.b = append(w.b, '}')
	})
	w.capabilities(&e.Capabilities)
	w.time(`,"probedAt":`, e.ProbedAt)
	w.text(`,"host":`, e.Host)
	w.text(`,"architecture":`, e.Architecture)
	w.text(`,"engine":`, e.Engine)
}

func (w *writer) capabilities(c *Capabilities) {
	w.boolean(`,"capabilities":{"guestBuild":`, c.GuestBuild)
	w.boolean(`,"custody":`, c.Custody)
	w.boolean(`,"sessionHistory":`, c.SessionHistory)
	w.boolean(`,"materialRenewal":`, c.MaterialRenewal)
	w.boolean(`,"coldCheckpoint":`, c.ColdCheckpoint)
	w.boolean(`,"memoryCheckpoint":`, c.MemoryCheckpoint)
	w.boolean(`,"nested":`, c.Nested)
	w.boolean(`,"pauseKeepsMemory":`, c.PauseKeepsMemory)
	w.boolean(`,"snapshot":`, c.Snapshot)
	w.boolean(`,"export":`, c.Export)
	w.boolean(`,"gpu":`, c.GPU)
	w.boolean(`,"durableSeatHome":`, c.DurableSeatHome)
	w.boolean(`,"screen":`, c.Screen)
	w.boolean(`,"exec":`, c.Exec)
	if c.Extend.StepMs > 0 {
		w.integer(`,"extend":{"stepMs":`, c.Extend.StepMs)
		w.b = append(w.b, '}')
	} else {
		w.boolean(`,"extend":`, false)
	}
	w.b = append(w.b, '}')
}

func (w *writer) goalAccepted(e *GoalAccepted) {
	w.text(`{"command":`, e.Command)
	w.text(`,"fingerprint":`, e.Fingerprint)
	w.value(`,"request":`, e.Request)
	w.text(`,"holder":`, string(e.Holder))
	w.text(`,"allocated":{"name":`, string(e.Allocated.Name))
	w.text(`,"owner":`, string(e.Allocated.Owner))
	w.text(`,"actor":`, string(e.Allocated.Actor))
	w.textIf(`,"uid":`, string(e.Allocated.UID))
	w.textIf(`,"environment":`, string(e.Allocated.Environment))
	w.textIf(`,"operation":`, string(e.Allocated.Operation))
	w.b = append(w.b, '}')
	w.time(`,"ready":`, e.Ready)
}

// fault leaves structured details to the library.
func (w *writer) fault(name string, f *fault.Error) {
	if f == nil {
		w.bad = true
		return
	}
	w.b = append(w.b, name...)
	w.text(`{"code":`, string(f.Code))
	w.text(`,"message":`, f.Message)
	w.textIf(`,"hint":`, f.Hint)
	w.text(`,"outcome":`, string(f.Outcome))
	w.boolean(`,"retryable":`, f.Retryable)
	if len(f.Details) > 0 {
		w.list(`,"details":`, len(f.Details), false, func(i int) { w.detail(&f.Details[i]) })
	}
	w.textIf(`,"id":`, f.ID)
	w.b = append(w.b, '}')
}

// detail writes the facts in the order of their names, as the library does.
func (w *writer) detail(d *fault.Detail) {
	w.text(`{"kind":`, d.Kind)
	if len(d.Facts) > 0 {
		w.b = append(w.b, `,"facts":{`...)
		from := len(w.b)
		for _, name := range slices.Sorted(maps.Keys(d.Facts)) {
			w.b = append(quote(append(w.b, ','), name), ':')
			w.text("", d.Facts[name])
		}
		w.close(from)
	}
	w.b = append(w.b, '}')
}

// value is JSON that is kept as it is, if the library would change nothing in
// it: no white space, and nothing that it escapes.
func (w *writer) value(name string, v []byte) {
	for _, c := range v {
		if c <= ' ' || c >= 0x7f || c == '<' || c == '>' || c == '&' {
			w.bad = true
		}
	}
	if w.bad || !jsontext.Value(v).IsValid() {
		w.bad = true
		return
	}
	w.b = append(append(w.b, name...), v...)
}

func (w *writer) integer(name string, n int64) {
	if n < 0 {
		w.bad = true
		return
	}
	w.number(name, uint64(n))
}

func (w *writer) boolean(name string, v bool) {
	w.b = append(w.b, name...)
	if v {
		w.b = append(w.b, `true`...)
		return
	}
	w.b = append(w.b, `false`...)
}

func (w *writer) timeOrNull(name string, t *time.Time) {
	if t == nil {
		w.b = append(append(w.b, name...), `null`...)
		return
	}
	w.time(name, *t)
}

// list is a list of n, or null for one that is nil.
func (w *writer) list(name string, n int, null bool, one func(i int)) {
	w.b = append(w.b, name...)
	if null {
		w.b = append(w.b, `null`...)
		return
	}
	w.b = append(w.b, '[')
	for i := range n {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		one(i)
	}
	w.b = append(w.b, ']')
}
