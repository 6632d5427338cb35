package tune

import (
	"cmp"
	"slices"
	"strconv"

	"ngxlab/lab"
)

// compareChanges orders the changes of a transition. Names are sorted within a kind, kinds are in the order of Kinds,
// so that nothing is read before it is written:
//
//	file      what services, commands and servers read when they start
//	sysctl    bounds of what follows: fs.nr_open of a unit's limit, rps_sock_flow_entries of a queue's share
//	ethtool   a change of rings or channels makes a driver set up its queues anew
//	sysfs     and the files of those queues (rps_cpus, smp_affinity) are written after
//	unit      a limit is given to the processes that a service starts
//	service
//	command   may need all of the above
//	nofile, nproc, build, nginx: of the fresh server, which inherits the rest
//
// What ends goes first instead, for it may undo or need what stands: commands that are taken back, then services that
// are stopped (irqbalance would write smp_affinity again; a command's revert may read a file of its step). Channels
// that become fewer go after sysfs: the files of the queues that vanish can be written only before.
//
// Going back is thereby the mirrored order where order matters: commands are taken back before the files they read
// change, services that had been stopped are started when the values they find are the original ones. Restoring from
// the journal is stricter still: it goes newest first.
func compareChanges(a, b lab.Change) int {
	return cmp.Or(cmp.Compare(stage(a), stage(b)), cmp.Compare(turn(a), turn(b)), compareKnobs(a.Knob, b.Knob))
}

// rank is the place of a kind in a transition.
func rank(kind string) int {
	return slices.IndexFunc(Kinds(), func(k Kind) bool { return k.Name == kind })
}

// stage is the place of a change in a transition.
func stage(c lab.Change) int {
	switch {
	case c.Knob.Kind == lab.KnobCommand && !applied(c.To):
		return -3
	case c.Knob.Kind == lab.KnobService && trimmed("", c.To.Text) == Stopped:
		return -2
	case c.Knob.Kind == lab.KnobEthtool && fewerChannels(c):
		return rank(lab.KnobSysfs)
	}
	return rank(c.Knob.Kind)
}

func fewerChannels(c lab.Change) bool {
	group, _, _ := splitEthtool(c.Knob.Name)
	return group == "channels" && rise(c) < 0
}

// turn is the place of a change among those of its stage: 0, or later when positive, earlier when negative.
//
//   - ip_local_port_range may never begin below ip_unprivileged_port_start (net/ipv4/sysctl_net_ipv4.c,
//     ipv4_local_port_range), so the range moves before the start rises and after it falls;
//   - of two halves of which one is 0, the kernel takes the other only, and makes the 0 itself;
//   - channels that become fewer go after the files of their queues.
func turn(c lab.Change) int {
	if _, half := Halves(c.Knob.Name); half && c.Knob.Kind == lab.KnobSysctl && fields(c.To.Text) == "0" {
		return 1
	}
	switch {
	case c.Knob.Kind == lab.KnobEthtool && fewerChannels(c):
		return 1
	case c.Knob.Name == "net.ipv4.ip_unprivileged_port_start":
		return rise(c)
	}
	return 0
}

// rise is 1 when a number becomes larger, -1 when it becomes smaller.
func rise(c lab.Change) int {
	from, _ := strconv.Atoi(fields(c.From.Text))
	to, _ := strconv.Atoi(fields(c.To.Text))
	return cmp.Compare(to, from)
}
