package knob

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

func ethtoolKnob(name string) lab.KnobID { return lab.KnobID{Kind: lab.KnobEthtool, Name: name} }

func ethtoolSetting(name, value string) lab.Setting {
	return lab.Setting{Knob: ethtoolKnob(name), Value: value}
}

// inNewNetwork makes the rest of the test run in a network of its own, which ends with it: the thread is never used
// for anything else.
func inNewNetwork(t *testing.T) {
	t.Helper()
	testlab.RequireCapability(t, unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN")
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
}

// addPair makes a pair of virtual interfaces, with a few queues, of which one has that name (rtnetlink(7), veth(4)).
func addPair(t *testing.T, name string) {
	t.Helper()
	inner := netlink.NewAttributeEncoder()
	inner.String(unix.IFLA_INFO_KIND, "veth")
	info, err := inner.Encode()
	if err != nil {
		t.Fatal(err)
	}
	outer := netlink.NewAttributeEncoder()
	outer.String(unix.IFLA_IFNAME, name)
	outer.Uint32(unix.IFLA_NUM_RX_QUEUES, 4)
	outer.Uint32(unix.IFLA_NUM_TX_QUEUES, 4)
	outer.Bytes(unix.IFLA_LINKINFO|unix.NLA_F_NESTED, info)
	attributes, err := outer.Encode()
	if err != nil {
		t.Fatal(err)
	}
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // of a test
	_, err = c.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.RTM_NEWLINK, Flags: netlink.Request | netlink.Acknowledge | netlink.Create | netlink.Excl},
		Data:   append(make([]byte, unix.SizeofIfInfomsg), attributes...),
	})
	if err != nil {
		t.Skipf("SKIPPED: this kernel makes no pair of virtual interfaces: %v", err)
	}
}

func TestFeaturesOfARealInterfaceAreSetAndPutBack(t *testing.T) {
	inNewNetwork(t)
	d := newInterfaces()
	for _, name := range []string{"gro", "gso", "tso", "generic-receive-offload"} {
		id := ethtoolKnob("lo.features." + name)
		original := mustRead(t, d, id)
		for _, to := range []string{"off", "on", "off"} {
			mustWrite(t, d, id, lab.Value{Text: to})
		}
		mustWrite(t, d, id, original)
	}
}

func TestPartsOfAFeatureComeBackOneByOne(t *testing.T) {
	inNewNetwork(t)
	d := newInterfaces()
	whole, part := ethtoolKnob("lo.features.tso"), ethtoolKnob("lo.features.tx-tcp-ecn-segmentation")
	mustWrite(t, d, whole, lab.Value{Text: "on"})
	mustWrite(t, d, part, lab.Value{Text: "off"})
	mixed := mustRead(t, d, whole)
	if !strings.Contains(mixed.Text, "tx-tcp-segmentation") || strings.Contains(mixed.Text, "-ecn-seg") {
		t.Fatalf("%+v", mixed)
	}
	mustWrite(t, d, whole, lab.Value{Text: "off"})
	mustWrite(t, d, whole, mixed)
	if v := mustRead(t, d, part); v.Text != "off" {
		t.Errorf("%+v", v)
	}
	fact := probed(t, d, ethtoolSetting("lo.features.tcp-segmentation-offload", "on"))
	if fact.Knob.Name != "lo.features.tso" || fact.Now != mixed || fact.To.Text != "on" || fact.Reason != "" {
		t.Errorf("%+v", fact)
	}
}

func TestChannelsOfARealInterfaceAreSetAndPutBack(t *testing.T) {
	inNewNetwork(t)
	addPair(t, "eth0.100")
	d, id := newInterfaces(), ethtoolKnob("eth0.100.channels.rx")
	original := mustRead(t, d, id)
	for _, to := range []string{"2", "3"} {
		mustWrite(t, d, id, lab.Value{Text: to})
	}
	mustWrite(t, d, id, original)
	fact := probed(t, d, ethtoolSetting(id.Name, "5"))
	if !strings.Contains(fact.Reason, "at most 4") || !strings.Contains(fact.Cure, "at most 4") || fact.Now != original {
		t.Errorf("%+v", fact)
	}
	if fact := probed(t, d, ethtoolSetting(id.Name, "002")); fact.Reason != "" || fact.To.Text != "2" || !strings.Contains(fact.Note, "interrupted") {
		t.Errorf("%+v", fact)
	}
	if err := d.write(t.Context(), id, lab.Value{Text: "5"}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("the kernel's own refusal: %v", err)
	}
}

func TestProbeSaysWhatAnInterfaceDoesNotHave(t *testing.T) {
	inNewNetwork(t)
	d := newInterfaces()
	for _, c := range []struct{ name, value, reason, cure string }{
		{"eth7.rings.rx", "512", "no interface eth7", "host's own"},
		{"lo.rings.rx", "512", "does not offer rings.rx", "leave it out"},
		{"lo.coalesce.adaptive-rx", "on", "does not offer", "leave it out"},
		{"lo.features.nosuch", "on", "does not offer", "leave it out"},
		{"lo.features.gro", "2", "neither on nor off", "one of these"},
		{"lo.features.highdma", "off", "does not let", "leave it out"},
		{"lo.rx", "2", "not INTERFACE.GROUP.SETTING", "eth0.rings.rx"},
		{"lo.rings.nosuch", "2", "not INTERFACE.GROUP.SETTING", "eth0.rings.rx"},
	} {
		fact := probed(t, d, ethtoolSetting(c.name, c.value))
		if !strings.Contains(fact.Reason, c.reason) || !strings.Contains(fact.Cure, c.cure) || fact.Privilege {
			t.Errorf("%s: reason %q, cure %q", c.name, fact.Reason, fact.Cure)
		}
	}
	for _, name := range []string{"eth7.rings.rx", "lo.rings.rx", "lo.features.nosuch"} {
		if v := mustRead(t, d, ethtoolKnob(name)); !v.Absent {
			t.Errorf("%s reads %+v", name, v)
		}
	}
	d.admin = false
	fact := probed(t, d, ethtoolSetting("lo.features.gro", onOff(mustRead(t, d, ethtoolKnob("lo.features.gro")).Text == "off")))
	if !fact.Privilege || !strings.Contains(fact.Reason, "CAP_NET_ADMIN") {
		t.Errorf("%+v", fact)
	}
}

// card plays the driver of a network card below the ioctl: hardware with rings and coalescing is not to be had where
// these tests run, and virtual interfaces have neither. What it cannot show is how real drivers round and refuse.
type card struct {
	t      *testing.T
	groups map[uint32][]uint32 // by the command that reads it
	sets   int
}

func newCard(t *testing.T) *card {
	coalesce := make([]uint32, 23)
	coalesce[1], coalesce[5], coalesce[10], coalesce[22] = 3, 50, 1, 7
	return &card{t: t, groups: map[uint32][]uint32{
		getRings:    {0, 4096, 0, 0, 4096, 512, 0, 0, 256},
		getChannels: {0, 0, 0, 1, 8, 0, 0, 1, 4},
		getCoalesce: coalesce,
	}}
}

func (c *card) call(iface string, words []uint32) error {
	if iface != "eth0.7" {
		return unix.ENODEV
	}
	if have, ok := c.groups[words[0]]; ok {
		if len(words) != len(have) {
			c.t.Errorf("command %#x with %d words, the kernel has %d", words[0], len(words), len(have))
		}
		copy(words[1:], have[1:])
		return nil
	}
	have, ok := c.groups[words[0]-1] // a command that sets follows the one that reads
	if !ok {
		return unix.EOPNOTSUPP
	}
	c.sets++
	for k := range have[1:] {
		if changed := have[k+1] != words[k+1]; changed && len(have) == 9 && k+1 < 5 {
			c.t.Errorf("a maximum was changed: %v", words)
		}
	}
	copy(have[1:], words[1:])
	return nil
}

func TestRingsChannelsAndCoalescingOfACard(t *testing.T) {
	c := newCard(t)
	d := interfaces{call: c.call, admin: true}
	for name, values := range map[string][2]string{
		"rings.rx": {"512", "4096"}, "rings.tx": {"256", "1024"}, "channels.combined": {"4", "8"}, "channels.other": {"1", "0"},
		"coalesce.rx-usecs": {"3", "100"}, "coalesce.tx-usecs": {"50", "0"}, "coalesce.adaptive-rx": {"on", "off"}, "coalesce.sample-interval": {"7", "1"},
	} {
		id := ethtoolKnob("eth0.7." + name)
		before := c.text()
		if v := mustRead(t, d, id); v.Text != values[0] {
			t.Errorf("%s reads %+v, want %s", name, v, values[0])
		}
		if fact := probed(t, d, ethtoolSetting(id.Name, values[1])); fact.Reason != "" || fact.To.Text != values[1] || fact.Now.Text != values[0] {
			t.Errorf("%+v", fact)
		}
		mustWrite(t, d, id, lab.Value{Text: values[1]})
		mustWrite(t, d, id, lab.Value{Text: values[0]})
		if after := c.text(); after != before {
			t.Errorf("%s: %s, was %s", name, after, before)
		}
	}
	for name, value := range map[string]string{"rings.rx": "4097", "rings.rx-mini": "1", "channels.rx": "1", "coalesce.adaptive-rx": "1", "rings.tx": "-1"} {
		if fact := probed(t, d, ethtoolSetting("eth0.7."+name, value)); fact.Reason == "" || fact.Cure == "" {
			t.Errorf("%s = %s: %+v", name, value, fact)
		}
	}
	sets := c.sets
	for _, bad := range []lab.Value{{Absent: true}, {Text: "many"}, {Text: ""}} {
		if err := d.write(t.Context(), ethtoolKnob("eth0.7.rings.rx"), bad); err == nil || c.sets != sets {
			t.Errorf("%+v was written", bad)
		}
	}
}

// text is all that the card has.
func (c *card) text() string {
	var all strings.Builder
	for _, command := range []uint32{getRings, getChannels, getCoalesce} {
		for _, w := range c.groups[command] {
			all.WriteString(groups["rings"].text("", w) + " ")
		}
	}
	return all.String()
}
