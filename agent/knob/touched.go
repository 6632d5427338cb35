package knob

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// touched is the sysctls that the kernel may change when id is written, without id itself (tune.Touched). An original
// of each goes into the journal before the write. They are put back after id: what the kernel itself puts back then is
// not written, for writing net.ipv4.conf.IFACE.X would cut the interface off from its default for good. What does still
// differ belongs to an interface that was cut off by someone else meanwhile, as by giving it an address.
//
// Two things of the defaults for interfaces do not come back, and neither can be read. The kernel remembers that
// conf.default.X was ever written, as a boot's own settings also do: an interface made after that no longer follows it.
// And an interface made while it was changed, which gets the original value at the restore (newcomers), got it by a write.
func (k *Keeper) touched(id lab.KnobID) []lab.KnobID {
	name := id.Name
	switch id.Kind {
	case lab.KnobSysfs:
	case lab.KnobSysctl:
		name = dotted(name)
	default:
		return nil
	}
	var ids []lab.KnobID
	for _, other := range tune.Touched(name, k.interfaces()) {
		ids = append(ids, named(other, id))
	}
	return ids
}

// touches reports whether writing one knob may change another.
func (k *Keeper) touches(id, other lab.KnobID) bool {
	return slices.ContainsFunc(k.touched(id), func(t lab.KnobID) bool { return sameKnob(t, other) })
}

// interfaces are those of the network namespace, as names of sysctls have them: eth0/100 for eth0.100.
func (k *Keeper) interfaces() []string {
	entries, err := os.ReadDir(filepath.Join(k.procSys, "net/ipv4/conf"))
	if err != nil {
		return nil // a kernel without IPv4 has none to touch
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.ReplaceAll(e.Name(), ".", "/"))
	}
	return names
}

// ofInterfaces reports whether a sysctl has a value for each interface, so that what it touches comes and goes.
func ofInterfaces(id lab.KnobID) bool {
	name := dotted(id.Name)
	return id.Kind == lab.KnobSysctl && (strings.Contains(name, ".conf.") || strings.Contains(name, ".neigh."))
}

// dotted is a name with "." as its separator; one that is none stays as it is.
func dotted(name string) string {
	path, err := Path(name)
	if err != nil {
		return name
	}
	return strings.Map(swapSeparators, path)
}

// named is the sysctl of a dotted name, written with the separator that like uses.
func named(name string, like lab.KnobID) lab.KnobID {
	if path, err := Path(like.Name); err == nil && path == like.Name && strings.Contains(path, "/") {
		name = strings.Map(swapSeparators, name)
	}
	return lab.KnobID{Kind: lab.KnobSysctl, Name: name}
}

// half is the other half of a couple, of which the kernel uses one and makes the other 0.
func half(id lab.KnobID) (other lab.KnobID, ok bool) {
	name, ok := tune.Halves(dotted(id.Name))
	if !ok || id.Kind != lab.KnobSysctl {
		return lab.KnobID{}, false
	}
	return named(name, id), true
}

func coupled(id lab.KnobID) bool {
	_, ok := half(id)
	return ok
}
