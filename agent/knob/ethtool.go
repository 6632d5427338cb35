package knob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// interfaces are knobs of network interfaces: "eth0.rings.rx", "eth0.channels.combined", "eth0.coalesce.rx-usecs",
// "eth0.features.gro". They are set by the ioctl SIOCETHTOOL, whose structures (linux/ethtool.h, of which all are rows
// of 32-bit words) are older than any kernel that nginx is served from.
type interfaces struct {
	// call hands the words to the driver of an interface, which answers in them.
	call  func(iface string, words []uint32) error
	admin bool // CAP_NET_ADMIN
}

func newInterfaces() interfaces { return interfaces{call: ethtoolIoctl, admin: mayAdminister()} }

// Commands of linux/ethtool.h.
const (
	getCoalesce, setCoalesce = 0x0e, 0x0f // struct ethtool_coalesce
	getRings, setRings       = 0x10, 0x11 // struct ethtool_ringparam
	getChannels, setChannels = 0x3c, 0x3d // struct ethtool_channels
)

// group is a structure of numbers that is read and written whole.
type group struct {
	get, set uint32
	words    int            // with the command
	at       map[string]int // setting → its word
	max      map[string]int // setting → the word of its maximum
	switches []string       // settings that are on or off
	note     string
}

const linkNote = "the interface's link may be interrupted for a moment when this is set and put back"

// groups are the structures, by the names of their knobs; the settings are named as ethtool(8) names them.
var groups = map[string]group{
	"rings": {get: getRings, set: setRings, words: 9, note: linkNote,
		max: map[string]int{"rx": 1, "rx-mini": 2, "rx-jumbo": 3, "tx": 4},
		at:  map[string]int{"rx": 5, "rx-mini": 6, "rx-jumbo": 7, "tx": 8}},
	"channels": {get: getChannels, set: setChannels, words: 9, note: linkNote,
		max: map[string]int{"rx": 1, "tx": 2, "other": 3, "combined": 4},
		at:  map[string]int{"rx": 5, "tx": 6, "other": 7, "combined": 8}},
	"coalesce": {get: getCoalesce, set: setCoalesce, words: 23, switches: []string{"adaptive-rx", "adaptive-tx"},
		at: map[string]int{
			"rx-usecs": 1, "rx-frames": 2, "rx-usecs-irq": 3, "rx-frames-irq": 4, "tx-usecs": 5, "tx-frames": 6, "tx-usecs-irq": 7, "tx-frames-irq": 8,
			"stats-block-usecs": 9, "adaptive-rx": 10, "adaptive-tx": 11, "pkt-rate-low": 12,
			"rx-usecs-low": 13, "rx-frames-low": 14, "tx-usecs-low": 15, "tx-frames-low": 16, "pkt-rate-high": 17,
			"rx-usecs-high": 18, "rx-frames-high": 19, "tx-usecs-high": 20, "tx-frames-high": 21, "sample-interval": 22,
		}},
}

// setting is a knob's name taken apart.
type setting struct{ iface, group, name string }

// parseSetting takes "eth0.100.rings.rx" apart from its end: the name of an interface may hold dots.
func parseSetting(id lab.KnobID) (setting, error) {
	parts := strings.Split(id.Name, ".")
	n := len(parts)
	if id.Kind == lab.KnobEthtool && n >= 3 {
		s := setting{strings.Join(parts[:n-2], "."), parts[n-2], parts[n-1]}
		_, known := groups[s.group].at[s.name]
		if (known || s.group == featuresGroup && s.name != "") && s.iface != "" && len(s.iface) < unix.IFNAMSIZ {
			return s, nil
		}
	}
	return setting{}, fmt.Errorf("%s: not INTERFACE.GROUP.SETTING of rings, channels, coalesce or features", id)
}

// lacking reports whether an error says that there is no such interface or that its driver does not have the setting.
func lacking(err error) bool {
	return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, errNotOffered)
}

// errNotOffered is of a setting that a driver does not have among others.
var errNotOffered = errors.New("its driver does not offer it")

// read returns a number, or on and off; Absent when the interface does not have it.
func (i interfaces) read(_ context.Context, id lab.KnobID, _ lab.Value) (lab.Value, error) {
	s, err := parseSetting(id)
	if err != nil {
		return lab.Value{}, err
	}
	now, _, err := i.present(s)
	if lacking(err) {
		return lab.Value{Absent: true}, nil
	}
	if err != nil {
		return lab.Value{}, fmt.Errorf("%s: %w", id, err)
	}
	return lab.Value{Text: now}, nil
}

// present is the value and the maximum, 0 where none is told.
func (i interfaces) present(s setting) (text string, most uint32, err error) {
	if s.group == featuresGroup {
		text, err = i.feature(s)
		return text, 0, err
	}
	g := groups[s.group]
	words, err := i.words(s, g)
	if err != nil {
		return "", 0, err
	}
	if at, told := g.max[s.name]; told {
		if most = words[at]; most == 0 {
			return "", 0, errNotOffered
		}
	}
	return g.text(s.name, words[g.at[s.name]]), most, nil
}

// words is the structure of a group as it is.
func (i interfaces) words(s setting, g group) ([]uint32, error) {
	words := make([]uint32, g.words)
	words[0] = g.get
	return words, i.call(s.iface, words)
}

func (g group) isSwitch(name string) bool {
	for _, s := range g.switches {
		if s == name {
			return true
		}
	}
	return false
}

func (g group) text(name string, word uint32) string {
	if !g.isSwitch(name) {
		return strconv.FormatUint(uint64(word), 10)
	}
	return onOff(word != 0)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// word is the number of a text.
func (g group) word(name, text string) (uint32, error) {
	if g.isSwitch(name) {
		switch text {
		case "on":
			return 1, nil
		case "off":
			return 0, nil
		}
		return 0, fmt.Errorf("%q is neither on nor off", text)
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no number of the setting", text)
	}
	return uint32(n), nil
}

// write changes one setting and gives the others of its group back as they are: the structure knows no other way.
func (i interfaces) write(_ context.Context, id lab.KnobID, to lab.Value) error {
	s, err := parseSetting(id)
	if err != nil {
		return err
	}
	switch {
	case to.Absent:
		err = errors.New("cannot be taken away")
	case s.group == featuresGroup:
		err = i.setFeature(s, to.Text)
	default:
		err = i.setWord(s, groups[s.group], to.Text)
	}
	if err != nil {
		return fmt.Errorf("%s: set %q: %w", id, to.Text, err)
	}
	return nil
}

func (i interfaces) setWord(s setting, g group, text string) error {
	word, err := g.word(s.name, text)
	if err != nil {
		return err
	}
	words, err := i.words(s, g)
	if err != nil {
		return err
	}
	words[0], words[g.at[s.name]] = g.set, word
	return i.call(s.iface, words)
}

// probe says whether the interface has the setting and could have the value. Two names of one feature are one knob.
func (i interfaces) probe(_ context.Context, asked lab.Setting) []lab.KnobFact {
	fact := lab.KnobFact{Asked: asked, Knob: asked.Knob, Now: lab.Value{Absent: true}, To: lab.Value{Text: strings.TrimSpace(asked.Value), Absent: asked.Absent}}
	r := i.examine(&fact)
	return []lab.KnobFact{r.asFact(fact)}
}

func (i interfaces) examine(fact *lab.KnobFact) refusal {
	s, err := parseSetting(fact.Asked.Knob)
	if err != nil {
		return refusal{reason: err.Error(), cure: "write it as in eth0.rings.rx"}
	}
	if s.group == featuresGroup {
		s.name = shortFeature(s.name)
		fact.Knob.Name = s.iface + "." + s.group + "." + s.name
	}
	now, most, err := i.present(s)
	switch {
	case errors.Is(err, unix.ENODEV):
		return refusal{reason: "there is no interface " + s.iface, cure: "name one of the host's own"}
	case lacking(err):
		return refusal{reason: "the driver of " + s.iface + " does not offer " + s.group + "." + s.name, cure: "leave it out"}
	case err != nil:
		return refusal{reason: err.Error()}
	}
	fact.Now, fact.Note = lab.Value{Text: now}, groups[s.group].note
	if r := s.judge(fact, most); r.is() || fact.Now == fact.To {
		return r
	}
	if s.group == featuresGroup {
		if err := i.changeable(s); err != nil {
			return refusal{reason: err.Error(), cure: "leave it out"}
		}
	}
	if !i.admin {
		r := needsRoot("setting up interfaces")
		r.reason += " (CAP_NET_ADMIN)"
		return r
	}
	return refusal{}
}

// judge refuses values that the setting cannot have, and writes those it can have in the one way.
func (s setting) judge(fact *lab.KnobFact, most uint32) refusal {
	switch fact.To.Text {
	case "true":
		fact.To.Text = "on"
	case "false":
		fact.To.Text = "off"
	}
	if s.group == featuresGroup {
		if fact.To.Absent || fact.To.Text != "on" && fact.To.Text != "off" {
			return refusal{reason: fmt.Sprintf("%q is neither on nor off", fact.To.Text), cure: "write one of these"}
		}
		return refusal{}
	}
	g := groups[s.group]
	word, err := g.word(s.name, fact.To.Text)
	switch {
	case err != nil || fact.To.Absent:
		return refusal{reason: fmt.Sprintf("%q is no value of %s.%s", fact.To.Text, s.group, s.name), cure: "write a number, or on or off of a switch"}
	case most != 0 && word > most:
		return refusal{reason: fmt.Sprintf("%s has at most %d", s.iface, most), cure: fmt.Sprintf("write at most %d", most)}
	}
	fact.To.Text = g.text(s.name, word)
	return refusal{}
}

// mayAdminister reports whether this process has CAP_NET_ADMIN (capabilities(7)).
func mayAdminister() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // of version 3, 64 bits in two halves
	if err := unix.Capget(&header, &data[0]); err != nil {
		return os.Geteuid() == 0
	}
	return data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0
}
