package tune

import "ngxlab/lab"

// halves are the pairs of sysctls of which the kernel uses one: writing either sets the other to 0. The first of each
// cannot be written as 0 (mm/page-writeback.c: dirty_bytes_handler, dirty_ratio_handler; mm/util.c:
// overcommit_kbytes_handler, overcommit_ratio_handler).
var halves = [][2]string{
	{"vm.dirty_bytes", "vm.dirty_ratio"},
	{"vm.dirty_background_bytes", "vm.dirty_background_ratio"},
	{"vm.overcommit_kbytes", "vm.overcommit_ratio"},
}

// Halves returns the sysctl that the kernel sets to 0 when this one is written, and the other way; ok is false when
// there is none.
func Halves(name string) (other string, ok bool) {
	for _, pair := range halves {
		switch name {
		case pair[0]:
			return pair[1], true
		case pair[1]:
			return pair[0], true
		}
	}
	return "", false
}

// Needs returns the knobs whose original values are needed besides those of the knobs given: the other halves, each
// once, in the order of the knobs. nil when there are none.
func Needs(knobs []lab.KnobID) []lab.KnobID {
	known := map[lab.KnobID]bool{}
	for _, k := range knobs {
		known[k] = true
	}
	var needed []lab.KnobID
	for _, k := range knobs {
		other, ok := Halves(k.Name)
		id := lab.KnobID{Kind: lab.KnobSysctl, Name: other}
		if ok && k.Kind == lab.KnobSysctl && !known[id] {
			needed, known[id] = append(needed, id), true
		}
	}
	return needed
}
