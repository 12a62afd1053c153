package berth

import (
	"os"

	"berth/events/fault"
	"berth/internal/handoff"
	"berth/internal/secretfile"
)

// openDelegation reads the profile of delegated seats and its sentinel; nil if
// the options name none. A profile that is wrong stops the manager: a seat
// that was begun by it could never exchange its token (H5, H10).
func (m *Manager) openDelegation() (*handoff.Profile, error) {
	if m.opts.Delegation == "" {
		return nil, nil
	}
	st, err := os.Stat(m.opts.Delegation)
	if err != nil || !st.Mode().IsRegular() || st.Size() > handoff.MaxProfile {
		return nil, badConfig("--delegation %s is not there, not a plain file, or has more than %d bytes", m.opts.Delegation, handoff.MaxProfile)
	}
	raw, err := os.ReadFile(m.opts.Delegation)
	if err != nil {
		return nil, badConfig("--delegation %s can't be read", m.opts.Delegation)
	}
	p, err := handoff.ParseProfile(raw)
	if err == nil {
		var creds []byte
		if creds, err = secretfile.Text(p.SentinelFile); err == nil {
			p, err = p.WithSentinel(string(creds), m.opts.Space)
			clear(creds)
		}
	}
	if err != nil {
		return nil, badConfig("--delegation: %s", fault.From(err).Message)
	}
	return &p, nil
}
