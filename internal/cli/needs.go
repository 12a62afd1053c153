package cli

import (
	"strconv"
	"strings"

	"berth/commands"
	"berth/events"
)

// readNeeds turns the flags about the instance into the input; a spawn that
// says nothing of it has none.
func (f *spawnFlags) readNeeds() (err error) {
	if f.on != "" {
		if _, err := events.ParseInstanceID(f.on); err != nil {
			return usage("--on %q is not the id of an instance", clip(f.on)).WithHint("berth hosts")
		}
	}
	n := f.needs
	if n.Labels, err = pairs("--needs-label", f.labels); err != nil {
		return err
	}
	if n.Headroom, err = readFree(f.free); err != nil {
		return err
	}
	if n.Arch != "" || n.Engine != "" || n.KVM || n.GPU || n.Labels != nil || n.Headroom != nil {
		f.in.Needs = &n
	}
	return nil
}

// readFree reads --min-headroom.
func readFree(s string) (*commands.FreeInput, error) {
	if s == "" {
		return nil, nil
	}
	given, err := pairs("--min-headroom", strings.Split(s, ","))
	if err != nil {
		return nil, err
	}
	var free commands.FreeInput
	for name, value := range given {
		switch name {
		case "cpus":
			free.CPUs = value
		case "memory":
			free.Memory = value
		case "disk":
			free.Disk = value
		case "slots":
			if free.Slots, err = strconv.ParseInt(value, 10, 64); err != nil {
				return nil, usage("--min-headroom: slots is not a whole number")
			}
		default:
			return nil, usage("--min-headroom: %q is none of cpus, memory, disk, slots", clip(name))
		}
	}
	return &free, nil
}
