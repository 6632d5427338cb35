package experiments

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

// every is a file with every kind of knob.
const every = `name: every
hosts:
  here: {local: true, roles: [target, load]}
server: {nproc: 4096, restart: needed, nginx: {worker_processes: 2}}
steps:
  - name: baseline
  - name: all
    on: [target, load]
    persist: true
    nofile: 65535
    nproc: 40960
    sysctl:
      net/ipv4/conf/eth0.100/rp_filter: 1
      net.ipv4.tcp_mem: [1, 2, 3]
    sysfs:
      /sys/kernel/mm/transparent_hugepage/enabled: never
      /sys/class/net/eth0/queues/rx-*/rps_cpus: 3
    ethtool: {eth0.rings.rx: 4096, eth0.features.gro: false}
    files:
      /etc/x.conf: |
        a = 1

      /etc/empty: ""
      /etc/y.conf: {content: "b\n", mode: "644", owner: root:root}
      /etc/z.conf: {mode: "0600"}
      /etc/gone.conf: null
    services: {irqbalance: stopped}
    units: {nginx.service.LimitNOFILE: 65535}
    commands:
      irq affinity: {apply: "echo a > x", verify: [grep, a, x], revert: rm x, timeout: 30s}
      other: {apply: "true", verify: "true", revert: "true"}
    nginx:
      worker_processes: null
      http.add_header: [[X-A, 1], [X-B, 2]]
      http.map:
        - "$http_host $x { default 0; }"
        - "$http_a $y { default 1; }"
      location.if: ["($x) { return 403; }", [plain, words]]
      gzip_types: [text/css, text/xml]
load:
  - {tool: wrk, connections: 10}
`

func TestEveryKindOfKnobDecodes(t *testing.T) {
	e := decode(t, every)
	if e.Server.Nproc != 4096 || e.Server.Restart != lab.RestartNeeded {
		t.Errorf("server %+v", e.Server)
	}
	s := e.Steps[1]
	if !s.Persist || s.Nproc != 40960 || !slices.Equal(s.Remove, []string{"worker_processes"}) {
		t.Errorf("step %+v", s)
	}
	if want := map[string]string{"net.ipv4.conf.eth0/100.rp_filter": "1", "net.ipv4.tcp_mem": "1 2 3"}; !maps.Equal(s.Sysctl, want) {
		t.Errorf("sysctls %v", s.Sysctl)
	}
	if want := map[string]string{
		"http.add_header": "X-A 1; X-B 2", "http.map": "$http_host $x { default 0; } $http_a $y { default 1; }",
		"location.if": "($x) { return 403; } plain words", "gzip_types": "text/css text/xml",
	}; !maps.Equal(s.Nginx, want) {
		t.Errorf("nginx %q", s.Nginx)
	}
	want := []string{
		`{"kind":"command","name":"irq affinity"} {"apply":["/bin/sh","-c","echo a > x"],"verify":["grep","a","x"],"revert":["/bin/sh","-c","rm x"],"timeout_s":30,"applied":true}`,
		`{"kind":"command","name":"other"} {"apply":["/bin/sh","-c","true"],"verify":["/bin/sh","-c","true"],"revert":["/bin/sh","-c","true"],"timeout_s":60,"applied":true}`,
		`{"kind":"ethtool","name":"eth0.features.gro"} off`,
		`{"kind":"ethtool","name":"eth0.rings.rx"} 4096`,
		`{"kind":"file","name":"/etc/empty"} {"content":""}`,
		`{"kind":"file","name":"/etc/gone.conf"}  absent`,
		`{"kind":"file","name":"/etc/x.conf"} {"content":"a = 1\n"}`,
		`{"kind":"file","name":"/etc/y.conf"} {"mode":"0644","owner":"root:root","content":"b\n"}`,
		`{"kind":"file","name":"/etc/z.conf"} {"mode":"0600"}`,
		`{"kind":"service","name":"irqbalance"} stopped`,
		`{"kind":"sysfs","name":"/sys/class/net/eth0/queues/rx-*/rps_cpus"} 3`,
		`{"kind":"sysfs","name":"/sys/kernel/mm/transparent_hugepage/enabled"} never`,
		`{"kind":"unit","name":"nginx.service.LimitNOFILE"} 65535`,
	}
	for i, k := range s.Knobs {
		id, err := json.Marshal(k.Knob)
		if err != nil {
			t.Fatal(err)
		}
		got := string(id) + " " + k.Value
		if k.Absent {
			got += " absent"
		}
		if i >= len(want) || got != want[i] {
			t.Errorf("knob %d is %s", i, got)
		}
	}
	if len(s.Knobs) != len(want) {
		t.Errorf("%d knobs, want %d", len(s.Knobs), len(want))
	}
}

// TestPlacesOfKnobsGoByTheNamesOfThePlan: a plan names a knob by its kind.
func TestPlacesOfKnobsGoByTheNamesOfThePlan(t *testing.T) {
	e := decode(t, every)
	for _, s := range e.Steps[1].Knobs {
		path := "steps[1]." + s.Knob.Kind + "." + s.Knob.Name
		at, ok := e.Where[path]
		if !ok || !strings.Contains(strings.Split(e.Text, "\n")[at.Line-1][at.Column-1:], s.Knob.Name) {
			t.Errorf("%s is at %v", path, at)
		}
	}
	for path, line := range map[string]int{
		"steps[1].sysctl.net.ipv4.conf.eth0/100.rp_filter": 13, "steps[1].nginx.worker_processes": 33, "steps[1].files./etc/y.conf.mode": 24,
		"steps[1].commands.irq affinity.verify": 30, "steps[1].nofile": 10, "server.nproc": 4,
	} {
		if got := e.Where[path].Line; got != line {
			t.Errorf("%s is on line %d, want %d", path, got, line)
		}
	}
}

func TestAFreshServerForEachStateIsTheDefault(t *testing.T) {
	if got := decode(t, small).Server.Restart; got != lab.RestartAlways {
		t.Errorf("restart %q", got)
	}
}

func TestEveryKindOfKnobFitsTheSchema(t *testing.T) {
	if err := compiled(t).Validate(asJSON(t, every)); err != nil {
		t.Error(err)
	}
}

func TestBadKnobsNamePlaceAndCure(t *testing.T) {
	const ok = `{apply: a, verify: b, revert: c}`
	for keys, want := range map[string]string{
		`sysfs: {/proc/sys/net/core/somaxconn: 1}`:                                       "x.yaml:6:23: /proc/sys/net/core/somaxconn is a sysctl|hint: write it under sysctl: net.core.somaxconn",
		`sysfs: {"/proc/sys/net/ipv4/conf/*/rp_filter": 1}`:                              "are sysctls|under sysctl, by its name",
		`sysfs: {/sys/../etc/passwd: 1}`:                                                 "not the plain path|write /etc/passwd",
		`sysfs: {/etc/x: 1}`:                                                             "not a file of the kernel|under files",
		`files: {/sys/x: a}`:                                                             "is a file of the kernel|under sysfs",
		`files: {x: a}`:                                                                  `"x" is not an absolute path|`,
		`files: {/etc/: a}`:                                                              "not the plain path|write /etc",
		`files: {/etc/x: {}}`:                                                            "expected content, mode or owner|null says",
		`files: {/etc/x: {contents: a}}`:                                                 `unknown key "contents"|did you mean "content"?`,
		`files: {/etc/x: {mode: 0999}}`:                                                  "a mode in octal|",
		`files: {/etc/x: {owner: root}}`:                                                 "user:group|",
		`ethtool: {eth0.ring.rx: 1}`:                                                     "setting of a network interface|GROUP is rings",
		`services: {irqbalance: stop}`:                                                   "expected one of started, stopped|",
		`services: {x.mount: stopped}`:                                                   "is not a service|under commands",
		`services: {a.service: stopped}`:                                                 "has a suffix too many|write a",
		`units: {nginx.LimitNOFILE: 1}`:                                                  "cannot be a limit of a unit|SERVICE.service.LimitNOFILE",
		`units: {nginx.service.LimitCPU: 1}`:                                             "cannot be a limit of a unit|LimitNPROC",
		`commands: {x: {apply: a, verify: b}}`:                                           "lacks revert|cannot be put back",
		`commands: {x: {apply: a}}`:                                                      "lacks verify and revert|",
		`commands: {x: {apply: a, verify: b, revert: c, timeout: 11m}}`:                  "a command may take from|not 11m",
		`commands: {x: {apply: [], verify: b, revert: c}}`:                               "the list is empty|",
		`commands: {x: {aply: a, verify: b, revert: c}}`:                                 `unknown key "aply"|did you mean "apply"?`,
		`sysctl: {net.core.somaxconn: 1, net/core/somaxconn: 2}`:                         "x.yaml:6:47: net/core/somaxconn is net.core.somaxconn, which is on line 6 already|leave one",
		`sysctl: {vm.dirty_ratio: 1, vm/dirty_bytes: 2}`:                                 "vm.dirty_bytes excludes vm.dirty_ratio, which is on line 6|leave one",
		`nginx: {worker_processes: 1, main.worker_processes: 2}`:                         "main.worker_processes is worker_processes, which is on line 6 already|",
		`nginx: {events.accept_mutex: "on", accept_mutex: null}`:                         "accept_mutex is events.accept_mutex, which is on line 6 already|",
		`nginx: {sendfile: "on", sendfile: "off"}`:                                       "stands here a second time|line 6",
		`persist: true, nginx: {sendfile: "on"}`:                                         "persist keeps sysctls and limits, and step \"a\" has none|",
		`sysctl: {net.core.somaxconn: null}`:                                             `the key "net.core.somaxconn" has no value|`,
		`on: load, nproc: 5`:                                                             "on says where|",
		`nproc: 0`:                                                                       "a whole number from 1|",
		`files: {/etc/x: {content: a}, /etc/x: {content: b}}, commands: {x: ` + ok + `}`: "a second time|",
	} {
		text := strings.Replace(small, "  - name: baseline\n", "  - name: baseline\n  - {name: a, "+keys+"}\n", 1)
		message, hint, _ := strings.Cut(want, "|")
		if got := problems(t, text).Error(); !strings.Contains(got, message) || !strings.Contains(got, hint) {
			t.Errorf("%s: got\n%s\nwant %s", keys, got, want)
		}
	}
	for section, keys := range map[string]string{
		"server":   "server: {nginx: {worker_processes: 1, main.worker_processes: 2}}\nsteps:",
		"capacity": "capacity: {nginx: {worker_processes: 1, main.worker_processes: 2}}\nsteps:",
		"null":     "server: {nginx: {worker_processes: null}}\nsteps:",
	} {
		if got := problems(t, strings.Replace(small, "steps:", keys, 1)).Error(); !strings.Contains(got, "on line 4") && !strings.Contains(got, "has no value") {
			t.Errorf("%s: %s", section, got)
		}
	}
}

// TestNamesOfKnobsMayLookLikeKeysOfOthers: the path of one knob may be that of a key of another.
func TestNamesOfKnobsMayLookLikeKeysOfOthers(t *testing.T) {
	decode(t, strings.Replace(small, "  - name: baseline\n", `  - name: baseline
  - {name: a, files: {/etc/x: {mode: "0600"}, /etc/x.mode: b}, nginx: {sendfile: "on", location.sendfile: "off", include: a, http.include: b}}
`, 1))
}

// TestAFileThatTwoStepsTuneIsGivenWhole: parts left out are the host's own of before, not those of another step.
func TestAFileThatTwoStepsTuneIsGivenWhole(t *testing.T) {
	for files, want := range map[string]string{
		"{content: a} | {mode: '0600'}":                                       `leaves out the content of /etc/x, which step "a" gives`,
		"{content: a, mode: '0600'} | b":                                      `leaves out the mode of /etc/x`,
		"{mode: '0600'} | b":                                                  `leaves out the mode of /etc/x`,
		"{content: a, owner: a:a} | {content: b}":                             `leaves out the owner of /etc/x`,
		"{content: a, mode: '0600'} | {content: b, mode: '0644', owner: b:b}": "",
		"a | b":               "",
		"a | null":            "",
		"null | {mode: 0600}": "",
	} {
		first, second, _ := strings.Cut(files, " | ")
		steps := "  - name: baseline\n  - {name: a, files: {/etc/x: " + first + "}}\n  - {name: b, files: {/etc/x: " + second + "}}\n"
		text := strings.Replace(small, "  - name: baseline\n", steps, 1)
		if want == "" {
			decode(t, text)
		} else if got := problems(t, text).Error(); !strings.Contains(got, want) || !strings.Contains(got, "x.yaml:7:") || strings.Contains(got, "x.yaml:6:") {
			t.Errorf("%s: got\n%s\nwant %s", files, got, want)
		}
		decode(t, text+"ladder: isolated\n")
	}
}

// TestElementOfAListIsOneArgument: what nginx would read as several, or as the end of the directive, is quoted.
func TestElementOfAListIsOneArgument(t *testing.T) {
	for written, want := range map[string]string{
		`[Strict-Transport-Security, "max-age=31536000; includeSubDomains", always]`: `Strict-Transport-Security "max-age=31536000; includeSubDomains" always`,
		`[[X-A, "a;b"], [X-B, "$x y"]]`:                                              `X-A "a;b"; X-B "$x y"`, `[X-C, "c{d}"]`: `X-C "c{d}"`, `[X-D, "#no"]`: `X-D "#no"`,
		`[X-E, 'say "so"']`: `X-E "say \"so\""`, `[X-F, '"two words"']`: `X-F "two words"`, `[X-G, "${host}x", 32k]`: `X-G ${host}x 32k`,
		`'X-H "a; b"'`: `X-H "a; b"`,
	} {
		e, err := Decode("x.yaml", strings.NewReader(strings.Replace(stepFile, "STEP", "nginx: {http.add_header: "+written+"}", 1)))
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if got := e.Steps[1].Nginx["http.add_header"]; got != want {
			t.Errorf("%s is %s, want %s", written, got, want)
		}
	}
	_, err := Decode("x.yaml", strings.NewReader(strings.Replace(stepFile, "STEP", `nginx: {http.add_header: "X-A 1; sendfile off"}`, 1)))
	if err == nil || !strings.Contains(err.Error(), "a semicolon ends a directive") {
		t.Errorf("a semicolon that ends the directive: %v", err)
	}
}

const stepFile = `name: quoting
hosts: {here: {local: true, roles: [target, load]}}
steps:
  - {name: base}
  - name: tuned
    STEP
load: [{tool: wrk, connections: 8}]
`

func TestOneNameForTwoCommandsIsRefused(t *testing.T) {
	command := `commands: {x: {apply: "true", verify: "true", revert: "true"}}`
	file := strings.Replace(stepFile, "STEP", command, 1)
	if _, err := Decode("x.yaml", strings.NewReader(strings.Replace(file, "{name: base}", "{name: base, "+command+"}", 1))); err != nil {
		t.Errorf("the same command in two steps: %v", err)
	}
	other := strings.Replace(command, `apply: "true"`, `apply: "echo"`, 1)
	_, err := Decode("x.yaml", strings.NewReader(strings.Replace(file, "{name: base}", "{name: base, "+other+"}", 1)))
	if err == nil || !strings.Contains(err.Error(), `command "x" is another one on line 4`) {
		t.Errorf("two commands of one name: %v", err)
	}
}

func TestControlCharactersInKnobsAreRefused(t *testing.T) {
	for _, step := range []string{
		`nginx: {http.add_header: "X-A \"a\eb\""}`, `files: {"/etc/a\eb": x}`, `sysfs: {/sys/kernel/x: "a\eb"}`,
	} {
		_, err := Decode("x.yaml", strings.NewReader(strings.Replace(stepFile, "STEP", step, 1)))
		if err == nil || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: %q", step, err)
		}
	}
	if _, err := Decode("x.yaml", strings.NewReader(strings.Replace(stepFile, "STEP", `files: {/etc/a: "a\eb"}`, 1))); err != nil {
		t.Errorf("what is in a file: %v", err)
	}
}
