package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// chaosKnob is a line of a step under a key of the experiment file, one of several at random.
type chaosKnob struct {
	key   string // "sysctl", "nginx" …
	name  string
	texts []string // values as in the file
	third string   // of sysctls: what somebody else sets meanwhile
}

// chaosKnobs are what a container host can have: no file of the kernel outside of its network, and no service. None
// depends on another.
func chaosKnobs() []chaosKnob {
	return []chaosKnob{
		{"sysctl", "net.core.somaxconn", []string{"8192", "1024"}, "5555"},
		{"sysctl", "net.ipv4.tcp_fin_timeout", []string{"33", "10"}, "44"},
		{"sysctl", "net.ipv4.tcp_rmem", []string{"4096 87380 8388608", `"8192  131072  4194304"`}, "4096 65536 5555555"},
		{"sysctl", "net.ipv4.ip_local_port_range", []string{"10240 65000", "20000 60000"}, "15000 55000"},
		{"sysctl", "net.ipv4.tcp_max_syn_backlog", []string{"4321", "16384"}, "5555"},
		{"sysctl", "net.ipv4.tcp_tw_reuse", []string{"1"}, "0"},
		{"sysctl", "net.ipv4.tcp_keepalive_time", []string{"600", "60"}, "555"},
		{"sysctl", "net.ipv4.tcp_keepalive_intvl", []string{"15", "5"}, "55"},
		{"sysctl", "net.ipv4.conf.eth0.rp_filter", []string{"1"}, "2"},
		{"nginx", "access_log", []string{`"off"`}, ""},
		{"nginx", "events.accept_mutex", []string{`"on"`}, ""},
		{"nginx", "events.worker_connections", []string{"2048", "4096"}, ""},
		{"nginx", "keepalive_requests", []string{"10000", "100000"}, ""},
		{"nginx", "tcp_nopush", []string{`"on"`}, ""},
		{"nginx", "open_file_cache", []string{"max=1000 inactive=60s"}, ""},
		{"nginx", "listen.reuseport", []string{"true"}, ""},
		{"nginx", "sendfile", []string{"null"}, ""},
		{"nofile", "", []string{"10000", "15000"}, ""},
		{"files", "/etc/chaos/new.conf", []string{`"a new file\n"`, `{content: "secret", mode: "0600", owner: "bench:bench"}`}, ""},
		{"files", "/etc/chaos/changed.conf", []string{`"second\n"`, `{mode: "0600", owner: "1:2"}`, `{content: "third", mode: "0755"}`, "null"}, ""},
		{"files", "/etc/chaos/binary.conf", []string{`"now text\n"`, `{mode: "0640"}`}, ""},
		{"files", "/etc/chaos/removed.conf", []string{"null"}, ""},
		{"units", "chaosd.service.LimitNOFILE", []string{"4321", "6543"}, ""},
		{"ethtool", "eth0.features.gro", []string{`"off"`}, ""},
		{"ethtool", "eth0.features.tso", []string{`"off"`}, ""},
		{"commands", "a mark", []string{"{apply: touch /run/chaos-mark, verify: test -e /run/chaos-mark, revert: rm -f /run/chaos-mark}"}, ""},
		{"commands", "mtu of lo", []string{"{apply: ip link set dev lo mtu 9000, verify: ip link show lo | grep -q 'mtu 9000', revert: ip link set dev lo mtu 65536}"}, ""},
		{"commands", "slow", []string{"{apply: sleep 0.3; mkdir -p /run/chaos-slow; sleep 0.3, verify: test -d /run/chaos-slow, revert: rm -rf /run/chaos-slow; sleep 0.3}"}, ""},
	}
}

// chaosStudy is an experiment in the making.
type chaosStudy struct {
	ladder  string
	steps   []string
	load    string
	restart string
	states  int
	knobs   []chaosKnob // of all steps
}

// randomStudy is a study of two to four states on one host.
func randomStudy(random *rand.Rand) chaosStudy {
	x := chaosStudy{states: 2 + random.IntN(3)}
	x.load = pick(random, []string{
		"{tool: wrk, connections: 4, keepalive: true, duration: 1s, warmup: {first: 0s, further: 0s}}",
		"{tool: ab, connections: 4, keepalive: false, duration: 1s, warmup: {first: 0s, further: 0s}}",
		"{tool: ab, connections: 4, keepalive: false, requests: 500, warmup: {first: 0s, further: 0s}}",
	})
	x.restart = pick(random, []string{"always", "needed"})
	left := chaosKnobs()
	random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	n := random.IntN(3)
	x.step("default", append([]chaosKnob{{"nginx", "keepalive_timeout", []string{"50"}, ""}}, left[:n]...), random)
	left = left[n:]
	for i := 1; i < x.states; i++ {
		n := 1 + random.IntN(3)
		x.step(fmt.Sprint("step ", i), left[:n], random)
		left = left[n:]
	}
	x.ladder = pick(random, []string{"cumulative", "isolated", "leave-one-out", "lists"})
	if x.ladder == "leave-one-out" {
		x.states++ // the baseline, the full one, and each without one
	}
	if x.ladder == "lists" {
		x.ladder = "[[default], [" + strings.Join(namesOfSteps(x.states), ", ") + "]]"
		x.states = 2
	}
	return x
}

// wholeStudy sets every knob, one kind after the other.
func wholeStudy() chaosStudy {
	x := chaosStudy{steps: []string{"{name: default, nginx: {keepalive_timeout: 50}}"}, ladder: "cumulative", restart: "always"}
	x.load = "{tool: ab, connections: 4, keepalive: false, requests: 500, warmup: {first: 0s, further: 0s}}"
	kinds := map[string][]chaosKnob{}
	for _, k := range chaosKnobs() {
		kinds[k.key] = append(kinds[k.key], k)
	}
	random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // always the same
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		x.step("all "+key, kinds[key], random)
	}
	return x
}

func namesOfSteps(n int) []string {
	names := []string{"default"}
	for i := 1; i < n; i++ {
		names = append(names, fmt.Sprint("step ", i))
	}
	return names
}

// step adds a step with a value of each knob.
func (x *chaosStudy) step(name string, knobs []chaosKnob, random *rand.Rand) {
	keys := map[string][]string{}
	var order []string
	for _, k := range knobs {
		text := pick(random, k.texts)
		if k.name != "" {
			text = k.name + ": " + text
		}
		if keys[k.key] == nil {
			order = append(order, k.key)
		}
		keys[k.key] = append(keys[k.key], text)
	}
	line := "{name: " + name
	for _, key := range order {
		text := strings.Join(keys[key], ", ")
		if key != "nofile" {
			text = "{" + text + "}"
		}
		line += ", " + key + ": " + text
	}
	if (keys["sysctl"] != nil || keys["nofile"] != nil) && random.IntN(3) == 0 {
		line += ", persist: true"
	}
	x.steps = append(x.steps, line+"}")
	x.knobs = append(x.knobs, knobs...)
}

// yaml is the experiment file for a host.
func (x chaosStudy) yaml(h *chaosHost) string {
	return fmt.Sprintf(`name: chaos
title: Does it come back?
hosts:
  web: {address: %s, port: %d, user: root, key: %s, roles: [target, load]}
builds:
  nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}
server: {build: nginx, port: 8081, site: file, body: 1KiB, restart: %s}
ladder: %s
steps:
  - %s
load:
  - %s
repeat: {min: 2, max: 2, precision: 5%%, effect: 5%%, cool_down: 10ms, control: false}
`, h.container.Address, chaosPort, h.container.Key, x.restart, x.ladder, strings.Join(x.steps, "\n  - "), x.load)
}

// edit is what somebody else sets meanwhile.
type edit struct {
	sysctl, value string
	early         bool // while the campaign runs; else between its end and the restore
}

// edited is, in one of ten studies that set a sysctl, an edit of one of them by somebody else.
func (x chaosStudy) edited(random *rand.Rand) *edit {
	roll, early := random.IntN(10), random.IntN(2) == 0
	for _, k := range x.knobs {
		if k.third != "" && roll == 0 {
			return &edit{sysctl: k.name, value: k.third, early: early}
		}
	}
	return nil
}
