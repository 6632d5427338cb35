package lab

import "time"

// Slowness is what knobs that start something (services, units, commands) may take in all, beyond what any other knob does.
// A host that takes so long is slow, and lives.
type Slowness struct {
	Read    time.Duration // each is read once, or asked for before anything is planned
	Apply   time.Duration // each is read, written and read back
	Restore time.Duration // each is awaited, judged, put back, judged and put back again, and read once more at its end
}

// What one service or unit may take: systemctl ends after 10 s where it only looks or reloads, and after 100 s where it starts
// or stops something, for systemd's own time-out is 90 s.
var slowUnit = Slowness{Read: 30 * time.Second, Apply: 3 * time.Minute, Restore: 7 * time.Minute}

// How many of a command's three programs run one after the other; each may take its whole time-out.
const (
	commandReads    = 1
	commandApplies  = 3
	commandRestores = 10
)

// SlownessOf adds up what settings may take; those of commands need their values.
func SlownessOf(settings []Setting) Slowness {
	var all Slowness
	for _, s := range settings {
		one := slownessOf(s)
		all.Read, all.Apply, all.Restore = all.Read+one.Read, all.Apply+one.Apply, all.Restore+one.Restore
	}
	return all
}

func slownessOf(s Setting) Slowness {
	switch s.Knob.Kind {
	case KnobService, KnobUnit:
		return slowUnit
	case KnobCommand:
		if v, err := ParseCommandValue(s.Value); err == nil {
			each := v.Timeout.Duration
			return Slowness{Read: commandReads * each, Apply: commandApplies * each, Restore: commandRestores * each}
		}
	}
	return Slowness{}
}

// Originals are what journal entries put back.
func Originals(pending []Pending) []Setting {
	settings := make([]Setting, len(pending))
	for i, p := range pending {
		settings[i] = Setting{Knob: p.Knob, Value: p.Original.Text, Absent: p.Original.Absent}
	}
	return settings
}
