package experiments

import (
	"fmt"
	"strings"

	"ngxlab/lab"
)

// checkHosts holds that no machine stands there twice and that both roles are taken.
func (d *decoding) checkHosts(all []lab.Host) {
	counts, locals := map[lab.Role]int{}, 0
	for _, h := range all {
		if h.Local {
			locals++
		}
		for _, r := range h.Roles {
			counts[r]++
		}
	}
	if locals > 1 {
		d.problem("hosts", "one host may have both roles: roles: [target, load]", "%d hosts are this machine", locals)
	}
	d.checkAddresses(all)
	for _, r := range []lab.Role{lab.RoleTarget, lab.RoleLoad} {
		if counts[r] == 0 {
			d.problem("hosts", fmt.Sprintf("give one: roles: [%s]", r), "no host has the role %s", r)
		}
	}
}

// kinds are the keys that make a host what it is.
const kinds = "local: true is this machine; address: NAME is reached over SSH; docker: {} is a container made for the study"

// checkEntry holds that an entry is of one kind, with the keys of that kind.
func (d *decoding) checkEntry(path string, one declared) {
	h := one.host
	if n := isSet(h.Local) + isSet(h.Address != "") + isSet(h.Docker != nil); n != 1 {
		d.problem(path, kinds, "host %q needs exactly one of local, address and docker", h.Name)
		return
	}
	if keys := sshKeys(h); h.Address == "" && len(keys) > 0 {
		what := "this machine"
		if h.Docker != nil {
			what = "a container of the lab"
		}
		d.problem(path+"."+keys[0], "leave out "+strings.Join(keys, ", ")+sudoHint(h), "host %q is %s: nothing of SSH applies", h.Name, what)
	}
	switch {
	case h.LoadAt != "" && h.Docker != nil:
		d.problem(path+".load_address", "leave it out", "host %q is a container: the lab knows its address", h.Name)
	case h.LoadAt != "" && !h.Has(lab.RoleTarget) && !h.Has(lab.RoleUpstream):
		d.problem(path+".load_address", "leave it out", "load_address says where load reaches a target, and host %q is none", h.Name)
	}
	if one.count > 0 && h.Docker == nil {
		d.problem(path+".count", "write each host under a name of its own", "count belongs to docker hosts: host %q is one machine", h.Name)
	}
	d.checkBounds(path+".docker", h)
}

func isSet(is bool) int {
	if is {
		return 1
	}
	return 0
}

// sshKeys are the keys for SSH that a host has.
func sshKeys(h lab.Host) []string {
	var keys []string
	for _, k := range []struct {
		name string
		set  bool
	}{{"port", h.Port != 0}, {"user", h.User != ""}, {"key", h.Key != ""}, {"jump", h.Jump != ""}, {"sudo", h.Sudo}} {
		if k.set {
			keys = append(keys, k.name)
		}
	}
	return keys
}

func sudoHint(h lab.Host) string {
	switch {
	case !h.Sudo:
		return ""
	case h.Local:
		return "; to be root here, start ngxlab with sudo"
	}
	return "; the lab is root in its containers"
}

// checkBounds holds the bounds of a container against each other.
func (d *decoding) checkBounds(path string, h lab.Host) {
	if h.Docker == nil || h.Docker.CPUSet == "" || h.Docker.CPUs == 0 {
		return
	}
	set, err := lab.ParseCPUs(h.Docker.CPUSet)
	if err == nil && h.Docker.CPUs > float64(len(set)) {
		d.problem(path+".cpus", "name more CPUs in cpuset, or lower cpus", "cpus %g is more than the %d of cpuset %s", h.Docker.CPUs, len(set), h.Docker.CPUSet)
	}
}

// checkAddresses refuses one machine under two names as far as the file shows it; the rest shows when they are reached.
func (d *decoding) checkAddresses(all []lab.Host) {
	type place struct {
		address, jump string
		port          int
	}
	first := map[place]lab.HostName{}
	for _, h := range all {
		if h.Address == "" {
			continue
		}
		at := place{h.Address, h.Jump, h.Port}
		if other, taken := first[at]; taken {
			d.problem("hosts."+string(h.Name)+".address", "one host may have both roles: roles: [target, load]", "hosts %q and %q are the same machine", other, h.Name)
			continue
		}
		first[at] = h.Name
	}
}
