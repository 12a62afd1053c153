package commands

import (
	"berth/events"
	"berth/events/fault"
	"berth/internal/connector"
)

// checkConnector refuses a connector that there is not, a sign that nothing
// could give, and a prompt that is no public text.
func (in SpawnInput) checkConnector() error {
	row, err := connector.Find(or(in.Connector, connector.Exec))
	if err != nil {
		return of("connector", err)
	}
	if err := row.CheckCommand(in.Command); err != nil {
		return of("command", err)
	}
	if err := row.CheckSign(in.Sign); err != nil {
		return of("sign", err)
	}
	if in.Sign != "" {
		sign, err := connector.ParseSign(in.Sign)
		if err != nil {
			return of("sign", err)
		}
		if sign != nil && sign.Pattern != "" {
			if err := checkText("sign", sign.Pattern, events.MaxPattern); err != nil {
				return err
			}
		}
	}
	if in.Prompt == "" {
		return nil
	}
	return of("prompt", events.CheckDocument("prompt", in.Prompt, MaxPrompt))
}

// of says which field a refusal is about; nil stays nil.
func of(field string, err error) error {
	if err == nil {
		return nil
	}
	f := fault.From(err)
	return bad(field, "%s", f.Message).WithHint("%s", f.Hint)
}

// connector is what the plan says of it; nil for a plain command, about which
// nothing more was asked.
func (in SpawnInput) connector() *events.Connector {
	if in.Connector == "" && in.Sign == "" && in.Prompt == "" {
		return nil
	}
	c := &events.Connector{Name: or(in.Connector, connector.Exec), Prompt: in.Prompt}
	if row, err := connector.Find(c.Name); err == nil {
		c.Ready = row.Sign
	}
	if in.Sign != "" {
		if sign, err := connector.ParseSign(in.Sign); err == nil {
			c.Ready = sign
		}
	}
	return c
}
