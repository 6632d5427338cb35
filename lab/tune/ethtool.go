package tune

import (
	"ngxlab/lab"
	"strconv"
	"strings"
)

// ethtoolSettings are the settings of each group, by the names that ethtool(8) prints and the kernel's netlink
// interface has (Documentation/networking/ethtool-netlink.rst); nil where the driver names them itself. Those of the
// value true are switches.
var ethtoolSettings = map[string]map[string]bool{
	"rings":    {"rx": false, "rx-mini": false, "rx-jumbo": false, "tx": false},
	"channels": {"rx": false, "tx": false, "other": false, "combined": false},
	"coalesce": {
		"adaptive-rx": true, "adaptive-tx": true, "stats-block-usecs": false, "sample-interval": false,
		"rx-usecs": false, "rx-frames": false, "rx-usecs-irq": false, "rx-frames-irq": false,
		"tx-usecs": false, "tx-frames": false, "tx-usecs-irq": false, "tx-frames-irq": false,
		"pkt-rate-low": false, "rx-usecs-low": false, "rx-frames-low": false, "tx-usecs-low": false, "tx-frames-low": false,
		"pkt-rate-high": false, "rx-usecs-high": false, "rx-frames-high": false, "tx-usecs-high": false, "tx-frames-high": false,
	},
	"features": nil,
}

// splitEthtool takes group and setting off "eth0.100.rings.rx"; an interface's name may itself hold dots.
func splitEthtool(name string) (group, setting string, ok bool) {
	parts := strings.Split(name, ".")
	n := len(parts)
	if n < 3 {
		return "", "", false
	}
	return parts[n-2], parts[n-1], parts[0] != "" && parts[n-1] != ""
}

func normaliseEthtool(_, value string) string {
	text := lab.OnOff(fields(value))
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return strconv.FormatUint(n, 10)
	}
	return text
}

func checkEthtool(name, value string) error {
	group, setting, ok := splitEthtool(name)
	settings, known := ethtoolSettings[group]
	if !ok || !known {
		return &ValueError{Value: name, Want: "INTERFACE.GROUP.SETTING with a group of rings, channels, coalesce or features"}
	}
	isSwitch, listed := settings[setting]
	if settings != nil && !listed {
		return &ValueError{Value: setting, Want: "a setting of the " + group + " of an interface"}
	}
	text := normaliseEthtool(name, value)
	if isSwitch || settings == nil {
		if text != "on" && text != "off" {
			return &ValueError{Value: value, Want: "on or off"}
		}
		return nil
	}
	if _, err := strconv.ParseUint(text, 10, 32); err != nil {
		return &ValueError{Value: value, Want: "a number of at least 0"}
	}
	return nil
}
