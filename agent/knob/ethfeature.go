package knob

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const featuresGroup = "features"

// Commands and structures of linux/ethtool.h for features, which the kernel names.
const (
	getStrings      = 0x1b // struct ethtool_gstrings
	getStringsInfo  = 0x37 // struct ethtool_sset_info
	getFeatures     = 0x3a // struct ethtool_gfeatures
	setFeatures     = 0x3b // struct ethtool_sfeatures
	featureStrings  = 4    // ETH_SS_FEATURES
	featureNameSize = 32   // ETH_GSTRING_LEN
)

// featureNames are the short names of ethtool(8) for features that the kernel has other names for, or splits
// (net/ethtool/common.c). Any other name is the kernel's own.
var featureNames = map[string][]string{
	"rx": {"rx-checksum"},
	"tx": {"tx-checksum-ipv4", "tx-checksum-ip-generic", "tx-checksum-ipv6", "tx-checksum-fcoe-crc", "tx-checksum-sctp"},
	"sg": {"tx-scatter-gather", "tx-scatter-gather-fraglist"},
	"tso": {"tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation", "tx-tcp6-segmentation",
		"tx-tcp-accecn-segmentation"},
	"gso": {"tx-generic-segmentation"}, "gro": {"rx-gro"}, "lro": {"rx-lro"},
	"rxvlan": {"rx-vlan-hw-parse"}, "txvlan": {"tx-vlan-hw-insert"}, "ntuple": {"rx-ntuple-filter"}, "rxhash": {"rx-hashing"},
}

// longNames are what ethtool(8) prints for features that it sets by a short name.
var longNames = map[string]string{
	"rx-checksumming": "rx", "tx-checksumming": "tx", "scatter-gather": "sg", "tcp-segmentation-offload": "tso",
	"generic-segmentation-offload": "gso", "generic-receive-offload": "gro", "large-receive-offload": "lro",
	"rx-vlan-offload": "rxvlan", "tx-vlan-offload": "txvlan", "ntuple-filters": "ntuple", "receive-hashing": "rxhash",
}

// shortFeature is the one name of a feature among its names.
func shortFeature(name string) string {
	if short, ok := longNames[name]; ok {
		return short
	}
	for short, names := range featureNames {
		if len(names) == 1 && names[0] == name {
			return short
		}
	}
	return name
}

// bits are those of a knob's feature that a driver has, by the kernel's names.
type bits struct {
	names   []string
	numbers []int
	blocks  []uint32 // of struct ethtool_get_features_block: available, requested, active, never changed
	width   int      // words of a set of all features
}

func (b bits) has(word int, n int) bool { return b.blocks[4*(n/32)+word]>>(n%32)&1 != 0 }

// changeable are the bits that the driver lets be changed.
func (b bits) changeable() bits {
	c := b
	c.names, c.numbers = nil, nil
	for k, n := range b.numbers {
		if b.has(0, n) && !b.has(3, n) {
			c.names, c.numbers = append(c.names, b.names[k]), append(c.numbers, n)
		}
	}
	return c
}

// on are the names of the bits that are in force.
func (b bits) on() []string {
	var on []string
	for k, n := range b.numbers {
		if b.has(2, n) {
			on = append(on, b.names[k])
		}
	}
	return on
}

// feature is "on", "off", or of a feature of several bits that differ the kernel's names of those that are on.
func (i interfaces) feature(s setting) (string, error) {
	b, err := i.bits(s)
	if err != nil {
		return "", err
	}
	if c := b.changeable(); len(c.names) > 0 {
		b = c // what cannot be changed is no part of the value
	}
	switch on := b.on(); len(on) {
	case 0, len(b.names):
		return onOff(len(on) > 0), nil
	default:
		return strings.Join(on, " "), nil
	}
}

// changeable says why a feature cannot be changed.
func (i interfaces) changeable(s setting) error {
	b, err := i.bits(s)
	if err == nil && len(b.changeable().names) == 0 {
		err = fmt.Errorf("the driver of %s does not let %s.%s be changed", s.iface, s.group, s.name)
	}
	return err
}

// bits looks a feature up.
func (i interfaces) bits(s setting) (bits, error) {
	all, err := i.featureList(s.iface)
	if err != nil {
		return bits{}, err
	}
	b := bits{width: (len(all) + 31) / 32}
	words := make([]uint32, 2+4*b.width)
	words[0], words[1] = getFeatures, uint32(b.width)
	if err := i.call(s.iface, words); err != nil {
		return bits{}, err
	}
	b.blocks = words[2:]
	names, split := featureNames[shortFeature(s.name)]
	if !split {
		names = []string{s.name}
	}
	for _, name := range names {
		if n := slices.Index(all, name); n >= 0 {
			b.names, b.numbers = append(b.names, name), append(b.numbers, n)
		}
	}
	if b.names == nil {
		return bits{}, errNotOffered
	}
	return b, nil
}

// featureList is every feature that the kernel knows, in the order of its bits.
func (i interfaces) featureList(iface string) ([]string, error) {
	info := []uint32{getStringsInfo, 0, 1 << featureStrings, 0, 0} // the mask has 64 bits, its lower half first
	if err := i.call(iface, info); err != nil {
		return nil, err
	}
	count := int(info[4])
	if info[2] == 0 || count > 1024 {
		return nil, errNotOffered
	}
	words := make([]uint32, 3+count*featureNameSize/4)
	words[0], words[1], words[2] = getStrings, featureStrings, uint32(count)
	if err := i.call(iface, words); err != nil {
		return nil, err
	}
	var text []byte
	for _, w := range words[3:] {
		text = binary.NativeEndian.AppendUint32(text, w)
	}
	names := make([]string, count)
	for n := range names {
		name, _, _ := bytes.Cut(text[n*featureNameSize:(n+1)*featureNameSize], []byte{0})
		names[n] = string(name)
	}
	return names, nil
}

// setFeature turns the changeable bits of a feature on or off, or on those that are named and the others off.
func (i interfaces) setFeature(s setting, text string) error {
	b, err := i.bits(s)
	if err != nil {
		return err
	}
	b = b.changeable()
	named := strings.Fields(text)
	switch {
	case len(b.names) == 0:
		return errors.New("its driver does not let it be changed")
	case text == "on":
		named = b.names
	case text == "off":
		named = nil
	}
	words := make([]uint32, 2+2*b.width) // of struct ethtool_set_features_block: valid, requested
	words[0], words[1] = setFeatures, uint32(b.width)
	for k, n := range b.numbers {
		words[2+2*(n/32)] |= 1 << (n % 32)
		if slices.Contains(named, b.names[k]) {
			words[2+2*(n/32)+1] |= 1 << (n % 32)
		}
	}
	for _, name := range named {
		if !slices.Contains(b.names, name) {
			return fmt.Errorf("no changeable feature %q in it", name)
		}
	}
	return i.call(s.iface, words)
}

// ethtoolIoctl is SIOCETHTOOL (netdevice(7)).
func ethtoolIoctl(iface string, words []uint32) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	request := struct {  // struct ifreq of linux/if.h
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&words[0])}
	copy(request.name[:unix.IFNAMSIZ-1], iface)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
