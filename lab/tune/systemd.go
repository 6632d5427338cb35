package tune

import (
	"slices"
	"strconv"
	"strings"
)

// The values of a service.
const (
	Started = "started"
	Stopped = "stopped"
)

// unitProperties are the limits of a systemd unit that can be knobs (systemd.exec(5), Process Properties).
var unitProperties = []string{"LimitNOFILE", "LimitNPROC"}

func checkService(name, value string) error {
	if !unitName(name) || strings.HasSuffix(name, ".service") {
		return &ValueError{Value: name, Want: "the name of a service as in irqbalance, without .service"}
	}
	if text := trimmed("", value); text != Started && text != Stopped {
		return &ValueError{Value: value, Want: "started or stopped"}
	}
	return nil
}

// unitName reports whether systemd could have a unit of that name (systemd.unit(5)).
func unitName(name string) bool {
	return name != "" && len(name) < 256 && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune(`:-_.\@`, r)
	})
}

// UnitProperty takes "nginx.service.LimitNOFILE" apart; ok is false when it is not a service's name and a known limit.
func UnitProperty(name string) (unit, property string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", "", false
	}
	unit, property = name[:i], name[i+1:]
	return unit, property, unitName(unit) && strings.HasSuffix(unit, ".service") && slices.Contains(unitProperties, property)
}

func checkUnit(name, value string) error {
	if _, _, ok := UnitProperty(name); !ok {
		return &ValueError{Value: name, Want: "a limit of a unit such as nginx.service.LimitNOFILE (or LimitNPROC)"}
	}
	if trimmed("", value) == "infinity" {
		return nil
	}
	if n, err := strconv.ParseInt(trimmed("", value), 10, 64); err != nil || n < 1 {
		return &ValueError{Value: value, Want: "a whole number of at least 1, or infinity"}
	}
	return nil
}
