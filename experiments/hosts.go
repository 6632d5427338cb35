package experiments

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// Bounds of a throwaway host. nginx, its build and the agent do not fit in less memory; a quota below a tenth of a CPU
// stops a process for most of each 100 ms.
const (
	maxCount       = 100
	leastCPUs      = 0.1
	mostCPUs       = 1024
	leastHostBytes = 64 << 20
)

// declared is one entry of `hosts:`: a host, or several alike.
type declared struct {
	host  lab.Host
	count int // 0 = one host of the entry's own name
}

var hosts = value[[]lab.Host]{declaredHosts.schema, func(d *decoding, path string, n ast.Node) ([]lab.Host, bool) {
	all, ok := declaredHosts.read(d, path, n)
	if !ok {
		return nil, false
	}
	return d.expand(path, all)
}}

var declaredHosts = anyKeys(names{what: "the name of a host", pattern: namePattern}, host, func() []declared { return nil },
	func(all []declared, name string, one declared) []declared {
		one.host.Name = lab.HostName(name)
		return append(all, one)
	})

var host = object(func() declared { return declared{} },
	has("local", "true: this machine", boolean, func(h *declared) *bool { return &h.host.Local }),
	has("address", "of a machine reached over SSH: an IP address, a host name, or a name of ~/.ssh/config", hostAddress, func(h *declared) *string { return &h.host.Address }),
	has("port", "of SSH, default as ~/.ssh/config says, else 22", port, func(h *declared) *int { return &h.host.Port }),
	has("user", "of SSH, default as ~/.ssh/config says, else your own name", login, func(h *declared) *string { return &h.host.User }),
	has("sudo", "true: become root with sudo -n on a machine reached over SSH", boolean, func(h *declared) *bool { return &h.host.Sudo }),
	has("key", "private key file for SSH, default as ~/.ssh/config says", text, func(h *declared) *string { return &h.host.Key }),
	has("jump", "machines to go through for SSH, [user@]host[:port], several with commas", jumps, func(h *declared) *string { return &h.host.Jump }),
	has("load_address", "where load generators reach a target, and a target its upstream, when that is not where SSH does; needed of this machine when load comes from others",
		hostAddress, func(h *declared) *string { return &h.host.LoadAt }),
	has("docker", "a throwaway host on a Docker engine and its bounds; {} is one without bounds", pointer(bounded), func(h *declared) **lab.DockerHost { return &h.host.Docker }),
	has("count", "of docker hosts: this many alike, called NAME1 to NAMEn", integer(1, maxCount), func(h *declared) *int { return &h.count }),
	has("roles", "target, load, upstream (of a reverse proxy), or several of them", list(role), func(h *declared) *[]lab.Role { return &h.host.Roles }).must(),
)

var dockerHost = object(func() lab.DockerHost { return lab.DockerHost{} },
	has("cpus", "CPU time per time, as a quota: 1.5 is one and a half CPUs", numberWithin(leastCPUs, mostCPUs), func(h *lab.DockerHost) *float64 { return &h.CPUs }),
	has("cpuset", "the CPUs of the machine that it may use, a list such as 0-3", cpuList, func(h *lab.DockerHost) *string { return &h.CPUSet }),
	has("memory", "bound on memory, at least 64MiB", sizeFrom(leastHostBytes, "64MiB"), func(h *lab.DockerHost) *int64 { return &h.MemoryBytes }),
	has("nofile", "hard limit of open files; the engine gives no more than it has itself", nofile, func(h *lab.DockerHost) *int { return &h.Nofile }),
	has("image", "image to start from, default the one that the lab makes", matching("the name of an image", `^[^\s]+$`), func(h *lab.DockerHost) *string { return &h.Image }),
)

// bounded tells those who write docker: true what to write.
var bounded = value[lab.DockerHost]{dockerHost.schema, func(d *decoding, path string, n ast.Node) (lab.DockerHost, bool) {
	if n.Type() == ast.BoolType {
		d.wrong(n, "a mapping of bounds", "docker: {} is a container without bounds, docker: {cpus: 2, memory: 2GiB} one with them")
		return lab.DockerHost{}, false
	}
	return dockerHost.read(d, path, n)
}}

// hostAddress is a host name or an IP address, which is kept without brackets.
var hostAddress = value[string]{text.schema, func(d *decoding, path string, n ast.Node) (string, bool) {
	if n.Type() == ast.SequenceType {
		d.wrong(n, "a host name or an IP address", `an IPv6 address in brackets needs quotes: "[::1]"`)
		return "", false
	}
	s, ok := text.read(d, path, n)
	if !ok {
		return "", false
	}
	address, hint := plainAddress(s)
	if address == "" {
		d.wrong(n, "a host name or an IP address", hint)
	}
	return address, address != ""
}}

// loginPattern is what OpenSSH takes as a user's name (ssh.c, valid_ruser), without spaces.
const loginPattern = `^[^-\s\x00-\x1f'"` + "`" + `;&<>|(){}][^\s\x00-\x1f'"` + "`" + `;&<>|(){}]*$`

var loginRE = regexp.MustCompile(loginPattern)

var login = value[string]{matching("", loginPattern).schema, func(d *decoding, path string, n ast.Node) (string, bool) {
	s, ok := text.read(d, path, n)
	if ok && !loginRE.MatchString(s) {
		d.wrong(n, "the name of a user", "write it as on the host: no spaces, no quotes, no dash at its beginning")
		return "", false
	}
	return s, ok
}}

// jumps are hosts to go through, with commas between them.
var jumps = value[string]{text.schema, func(d *decoding, path string, n ast.Node) (string, bool) {
	s, ok := text.read(d, path, n)
	if !ok || strings.EqualFold(s, "none") {
		return s, ok
	}
	for one := range strings.SplitSeq(s, ",") {
		if hint := jumpHint(strings.TrimSpace(one)); hint != "" {
			d.wrong(n, "machines to go through, [user@]host[:port], with one comma between two", hint)
			return "", false
		}
	}
	return s, true
}}

// jumpHint is what is wrong with one host to go through; "" when nothing is.
func jumpHint(one string) string {
	host := strings.TrimPrefix(one, "ssh://")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		if !loginRE.MatchString(host[:at]) {
			return fmt.Sprintf("%q is no user's name", host[:at])
		}
		host = host[at+1:]
	}
	if one == "" {
		return "there is a comma too many"
	}
	if address, _ := plainAddress(host); address != "" {
		return ""
	}
	name, port, ok := cutPort(host)
	if address, _ := plainAddress(name); !ok || address == "" || strings.Trim(port, "0") == "" {
		return fmt.Sprintf("%q is no host's name or address", host)
	}
	return ""
}

var hostNameRE = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.-])?$`)

// plainAddress is an address without brackets, or "" and what to write instead.
func plainAddress(s string) (address, hint string) {
	switch rest, scheme := strings.CutPrefix(s, "ssh://"); {
	case scheme:
		return "", "write address, port and user each under its own key, without ssh://" + plainHint(rest)
	case strings.Contains(s, "@"):
		user, host, _ := strings.Cut(s, "@")
		return "", fmt.Sprintf("write user: %s, address: %s", user, quotedIf(host))
	}
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	ip, err := netip.ParseAddr(bare)
	if err == nil && (bare == s || ip.Is6()) {
		return bare, ""
	}
	if hostNameRE.MatchString(s) {
		return s, ""
	}
	if host, port, ok := cutPort(s); ok {
		return "", fmt.Sprintf("a port has its own key: address: %s, port: %s", quotedIf(host), port)
	}
	return "", ""
}

// cutPort takes the port off "name:22" and "[::1]:22".
func cutPort(s string) (host, port string, ok bool) {
	at := strings.LastIndex(s, ":")
	if at <= 0 {
		return "", "", false
	}
	host, port = strings.Trim(s[:at], "[]"), s[at+1:]
	_, err := strconv.ParseUint(port, 10, 16)
	return host, port, err == nil
}

func plainHint(rest string) string {
	user, host, found := strings.Cut(rest, "@")
	if !found {
		user, host = "", rest
	}
	hint := ": "
	if user != "" {
		hint += "user: " + user + ", "
	}
	if h, port, ok := cutPort(host); ok {
		return hint + "address: " + quotedIf(h) + ", port: " + port
	}
	return hint + "address: " + quotedIf(host)
}

// quotedIf quotes what YAML would not read as text.
func quotedIf(s string) string {
	if strings.ContainsAny(s, ":[]") {
		return strconv.Quote(s)
	}
	return s
}

// expand makes the hosts of every entry: NAME alone without count, NAME1 to NAMEn with it. Each is found in Where at its
// entry.
func (d *decoding) expand(path string, all []declared) ([]lab.Host, bool) {
	var out []lab.Host
	before := len(d.problems)
	from := map[lab.HostName]string{}
	for _, one := range all {
		at := path + "." + string(one.host.Name)
		if name := strings.ToLower(string(one.host.Name)); one.count == 0 && (name == "local" || name == "localhost") {
			d.problem(at, "choose another name, such as here", "%q is this machine in every command: no host can be called that", one.host.Name)
		}
		d.checkEntry(at, one)
		for _, h := range one.hosts() {
			if !nameRE.MatchString(string(h.Name)) {
				d.problem(at, "choose a shorter name", "%q, of %q with its number, is too long for the name of a host", h.Name, one.host.Name)
				break
			}
			if other, taken := from[h.Name]; taken {
				d.clash(at, other, one, h.Name)
				break
			}
			from[h.Name] = at
			out = append(out, h)
		}
	}
	for name, at := range from {
		d.where[path+"."+string(name)] = d.at(at)
	}
	return out, len(d.problems) == before
}

// clash says that two entries make a host of one name.
func (d *decoding) clash(at, other string, one declared, name lab.HostName) {
	first := d.at(other)
	d.problem(at, "choose another name for one of them", "host %q of %q is there already: the entry on line %d makes one of that name", name, one.host.Name, first.Line)
}

// hosts are the hosts that an entry stands for.
func (one declared) hosts() []lab.Host {
	if one.count == 0 || one.host.Docker == nil {
		return []lab.Host{one.host}
	}
	all := make([]lab.Host, one.count)
	for i := range all {
		all[i] = one.host
		all[i].Name += lab.HostName(strconv.Itoa(i + 1))
		bounds, roles := *one.host.Docker, slices.Clone(one.host.Roles)
		all[i].Docker, all[i].Roles = &bounds, roles
	}
	return all
}
