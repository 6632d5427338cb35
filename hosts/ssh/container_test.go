package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/hosts"
	"ngxlab/hosts/docker"
	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

// box is a container of a Docker lab, with OpenSSH, sudo and users of its own.
type box struct{ docker.Container }

func newBox(t *testing.T) *box {
	t.Helper()
	testlab.Require(t, "docker")
	_, _, containers := dockerlab.Lab(t, "web")
	return &box{containers[0]}
}

// root runs a script as root, beside SSH.
func (b *box) root(t *testing.T, script string) string {
	t.Helper()
	return do(t, "exec", b.Name, "/bin/sh", "-c", script)
}

// user makes a user; sudoers are lines for its rules, with USER for its name.
func (b *box) user(t *testing.T, name, sudoers string) {
	t.Helper()
	b.root(t, fmt.Sprintf("useradd -m -N -s /bin/bash %[1]s && usermod -p '*' %[1]s && printf '%%b' '%[2]s' >/etc/sudoers.d/%[1]s && chmod 0440 /etc/sudoers.d/%[1]s && visudo -cq",
		name, strings.ReplaceAll(sudoers, "USER", name)))
}

// enter logs in as a user and starts an agent.
func (b *box) enter(t *testing.T, user string, o hosts.Options) (*hosts.Host, error) {
	t.Helper()
	options := ssh.Options{Config: []string{}, KnownHosts: []string{b.KnownHosts}, ConnectTimeout: 20 * time.Second}
	c, err := ssh.Dial(t.Context(), ssh.Destination{Address: b.Address, User: user, Key: b.Key}, options)
	if err != nil {
		t.Fatal(err)
	}
	o.Name, o.Agent = "web", testlab.Agent(t)
	return hosts.Enter(t.Context(), c, o)
}

// entered is enter where that must go well; the session ends with the test.
func (b *box) entered(t *testing.T, user string, o hosts.Options) *hosts.Host {
	t.Helper()
	h, err := b.enter(t, user, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // some are cut
	return h
}

// agents are the agents in the directory of a user, by file name.
func (b *box) agents(t *testing.T, dir string) []string {
	t.Helper()
	return strings.Fields(b.root(t, "ls -A "+dir+" 2>/dev/null || true"))
}

const nopasswd = `USER ALL=(ALL) NOPASSWD: ALL\n`

func TestSudoOfAContainerStartsTheAgent(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for name, sudoers := range map[string]string{
		"plain": nopasswd, "pty": `Defaults:USER use_pty\n` + nopasswd, "nopty": `Defaults:USER !use_pty\n` + nopasswd,
		"tty": `Defaults:USER requiretty\n` + nopasswd, "both": `Defaults:USER requiretty,use_pty\n` + nopasswd,
	} {
		t.Run(name, func(t *testing.T) {
			b.user(t, name, sudoers)
			h := b.entered(t, name, hosts.Options{Sudo: true})
			f, err := h.Facts(t.Context(), lab.FactsQuery{})
			if err != nil || !f.Root {
				t.Errorf("root %v, %v", f.Root, err)
			}
			b.cutMustEnd(t, h, name)
			again := b.entered(t, name, hosts.Options{Sudo: true})
			testlab.Eventually(t, "the host is free", func() bool { return again.Claim(t.Context(), "c2", "bo@desk") == nil })
			if err := again.Close(); err != nil {
				t.Error(err)
			}
			testlab.Eventually(t, "all is gone after a close", func() bool { return b.running(t) == "" })
		})
	}
	for name, sudoers := range map[string]string{"asked": `USER ALL=(ALL) ALL\n`, "stranger": "", "lister": `USER ALL=(ALL) NOPASSWD: /bin/ls\n`, "other": `USER ALL=(nobody) NOPASSWD: ALL\n`} {
		t.Run(name, func(t *testing.T) {
			b.user(t, name, sudoers)
			began := time.Now()
			_, err := b.enter(t, name, hosts.Options{Sudo: true})
			says(t, err, "web: sudo -n does not start the agent for user "+name, "sudo: a password is required")
			var refused *hosts.SudoError
			if !errors.As(err, &refused) || !strings.Contains(refused.Cure(), name+" ALL=(root) NOPASSWD: /home/"+name+"/.cache/ngxlab/ngxlab-agent-*") {
				t.Errorf("the cure is not the rule: %v", err)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("told after %v", took)
			}
			testlab.Eventually(t, "nothing is left", func() bool { return b.running(t) == "" })
		})
	}
}

// running are the processes in the container beside sshd and what looks at them.
func (b *box) running(t *testing.T) string {
	t.Helper()
	return b.root(t, "ps -eo pid=,stat=,args= | grep -v -e '^ *1 ' -e ' Z' -e 'sshd: ' -e 'ps -eo' -e 'grep -v' || true")
}

// cutMustEnd claims the host, runs something that outlives hang-ups, cuts the connection, and holds that all is gone in five
// seconds.
func (b *box) cutMustEnd(t *testing.T, h *hosts.Host, user string) {
	t.Helper()
	if err := h.Claim(t.Context(), "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	armed, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"sh", "-c", "trap : HUP INT TERM; setsid sleep 1234 & while :; do sleep 0.1; done"}, Deadline: lab.Seconds(600)}})
	if err != nil {
		t.Fatal(err)
	}
	fired := make(chan error, 1)
	go func() {
		_, err := h.Fire(context.WithoutCancel(t.Context()), armed, 0)
		fired <- err
	}()
	testlab.Eventually(t, "it runs", func() bool { return strings.Contains(b.running(t), "sleep 1234") })
	began := time.Now()
	b.root(t, "pkill -KILL -f '^sshd: "+user+"'")
	testlab.Eventually(t, "all is gone", func() bool { return b.running(t) == "" })
	if took := time.Since(began); took > 6*time.Second { // five, and the time to look
		t.Errorf("gone after %v", took)
	}
	if err := <-fired; !errors.Is(err, lab.ErrLost) {
		t.Errorf("the command ended with %v", err)
	}
}

func TestAccountsOfEveryKindAreEntered(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.root(t, "echo Welcome to this machine >/etc/motd; echo Keep out >/etc/banner; useradd -m -s /bin/sh dash && usermod -p '*' dash")
	for _, name := range []string{"noisy", "quietless", "readonly", "homeless"} {
		b.user(t, name, nopasswd)
	}
	b.root(t, `printf 'echo Hello; echo there >&2; printf "no end of line"\n' | tee /home/noisy/.bashrc >/home/noisy/.profile`)
	b.root(t, `echo 'yes chatter | head -c 60000' >/home/quietless/.bashrc`)
	b.root(t, "chown root:root /home/readonly && chmod 0555 /home/readonly; rm -rf /home/homeless")
	for name, dir := range map[string]string{
		"dash": "/home/dash/.cache/ngxlab", "noisy": "/home/noisy/.cache/ngxlab", "quietless": "/home/quietless/.cache/ngxlab",
		"readonly": "/var/tmp/ngxlab-$(id -u readonly)", "homeless": "/var/tmp/ngxlab-$(id -u homeless)", "root": "/root/.cache/ngxlab",
	} {
		t.Run(name, func(t *testing.T) {
			h := b.entered(t, name, hosts.Options{})
			f, err := h.Facts(t.Context(), lab.FactsQuery{})
			if err != nil || f.Root != (name == "root") {
				t.Errorf("root %v, %v", f.Root, err)
			}
			if atHome := !strings.HasPrefix(f.StateDir, "/var/tmp/"); atHome != !strings.HasPrefix(dir, "/var/tmp/") {
				t.Errorf("its state is in %s", f.StateDir)
			}
			if there := b.agents(t, dir); len(there) != 1 {
				t.Errorf("in %s are %v", dir, there)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDamagedAgentInAContainerIsSentAgainAndOthersStay(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	const dir, old = "/root/.cache/ngxlab", "ngxlab-agent-0123456789abcdef"
	content, err := os.ReadFile(testlab.Agent(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"", "truncate -s 1000000 F", "truncate -s 0 F", "dd if=/dev/urandom of=F bs=4096 seek=200 count=500 conv=notrunc 2>/dev/null", "chmod 0644 F", "rm F && mkdir F"} {
		t.Run(damage, func(t *testing.T) {
			if damage != "" {
				b.root(t, "cd "+dir+" && F=$(ls | grep -v "+old+") && "+strings.ReplaceAll(damage, "F", "$F"))
			}
			h, err := b.enter(t, "root", hosts.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if damage == "rm F && mkdir F" { // nothing can be put there
				if there := b.agents(t, "/var/tmp/ngxlab-0"); len(there) != 1 {
					t.Errorf("in the next directory are %v", there)
				}
				return
			}
			b.root(t, "echo older >"+dir+"/"+old)
			sizes := strings.Fields(b.root(t, "cd "+dir+" && stat -c %s:%a *"))
			want := []string{"6:644", fmt.Sprintf("%d:755", len(content))}
			if slices.Sort(sizes); len(sizes) != 2 || !slices.Contains(sizes, want[0]) || !slices.Contains(sizes, want[1]) {
				t.Errorf("there are %v, want %v", sizes, want)
			}
		})
	}
}

// newSmallBox is a container beside that of a lab, with the lab's key and a file system of 24 MiB at /small.
func newSmallBox(t *testing.T) *box {
	t.Helper()
	testlab.Require(t, "docker")
	_, l, containers := dockerlab.Lab(t, "web")
	b := &box{Container: containers[0]}
	image, small, network := do(t, "inspect", "-f", "{{.Config.Image}}", b.Name), b.Name+"-small", "ngxlab-"+l.Name
	do(t, "create", "--name", small, "--network", network, "--tmpfs", "/small:exec,size=24m", "--entrypoint", "/bin/sh", image, "/etc/ngxlab/start")
	t.Cleanup(func() { do(t, "rm", "-f", small) })
	setup := t.TempDir()
	do(t, "cp", b.Name+":/etc/ngxlab", setup)
	do(t, "cp", setup+"/ngxlab", small+":/etc/")
	do(t, "start", small)
	b.Name, b.Address = small, do(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", small)
	b.KnownHosts = written(t, "known_hosts", b.Address+" "+b.HostKey+"\n")
	testlab.Eventually(t, "its sshd listens", func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.Address+":22")
		return err == nil && c.Close() == nil
	})
	return b
}

// do runs the docker command.
func do(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+testlab.Docker(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// fill fills a small file system but for some KiB; what it returns frees it.
func (b *box) fill(t *testing.T, dir string, leave int) (free func()) {
	t.Helper()
	b.root(t, fmt.Sprintf("left=$(df --output=avail %[1]s | tail -n 1); dd if=/dev/zero of=%[1]s/filler bs=1024 count=$((left - %[2]d)) 2>/dev/null", dir, leave))
	return func() { b.root(t, "rm -f "+dir+"/filler") }
}

// TestFullDiskOfAHostIsToldAndTheHostIsAsItWas has home and state directory on a small file system.
func TestFullDiskOfAHostIsToldAndTheHostIsAsItWas(t *testing.T) {
	t.Parallel()
	b := newSmallBox(t)
	b.user(t, "small", nopasswd)
	b.root(t, "mkdir /small/home && chown small /small/home && usermod -d /small/home small")
	t.Run("upload", func(t *testing.T) {
		free := b.fill(t, "/small", 3000)
		defer free()
		h, err := b.enter(t, "small", hosts.Options{})
		if err == nil {
			err = h.Close()
		}
		if there := b.agents(t, "/var/tmp/ngxlab-$(id -u small)"); len(there) != 1 || err != nil {
			t.Errorf("in the next directory are %v, %v", there, err)
		}
		if left := b.agents(t, "/small/home/.cache/ngxlab"); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
		b.root(t, "d=/var/tmp/ngxlab-$(id -u small); rm -r $d; touch $d; e=/dev/shm/ngxlab-$(id -u small); rm -rf $e; touch $e")
		_, err = b.enter(t, "small", hosts.Options{})
		says(t, err, "web: no directory for the agent", "put the agent at /small/home/.cache/ngxlab/ngxlab-agent-", "o space left on device", "/var/tmp/ngxlab-", "/dev/shm/ngxlab-")
	})
	t.Run("start", func(t *testing.T) {
		defer b.fill(t, "/small", 0)()
		h := b.entered(t, "root", hosts.Options{Dir: "/small/other"}) // directories and empty files take no space there
		if _, err := h.Facts(t.Context(), lab.FactsQuery{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("build", b.fullBuild)
}

// fullBuild builds where the state directory is on the small file system.
func (b *box) fullBuild(t *testing.T) {
	h := b.entered(t, "root", hosts.Options{Dir: "/small/state"})
	if err := h.Claim(t.Context(), "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	b.root(t, `mkdir -p /root/src && printf 'echo configuring\n' >/root/src/configure`)
	recipe := lab.Recipe{Name: "nginx", Flavor: "nginx", Sources: []lab.BuildSource{{Path: "/root/src"}}}
	free := b.fill(t, "/small", 0)
	_, err := h.Build(t.Context(), recipe, io.Discard)
	says(t, err, "web: build: ", "o space left on device")
	free()
	b.root(t, `printf 'dd if=/dev/zero of=big bs=1M count=100\n' >/root/src/configure`)
	_, err = h.Build(t.Context(), recipe, io.Discard)
	says(t, err, "web: build: ", "o space left on device")
	if left := b.root(t, "find /small/state -name nginx; find /small/state -type f -size +1000k"); left != "" {
		t.Errorf("left are %s", left)
	}
}

// TestFullDiskUnderTheJournalLeavesTheHostAsItWas has the state directory on the 64 MiB of /dev/shm.
func TestFullDiskUnderTheJournalLeavesTheHostAsItWas(t *testing.T) {
	t.Parallel()
	b, ctx := newBox(t), t.Context()
	h := b.entered(t, "root", hosts.Options{Dir: "/dev/shm/state"})
	knob := lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}
	change := lab.Change{Knob: knob, From: lab.Value{Text: "4096"}, To: lab.Value{Text: "1234"}}
	mustBe := func(want string, when string) {
		t.Helper()
		if now, err := h.Read(ctx, lab.Naming(knob)); err != nil || now[0].Text != want {
			t.Errorf("%s: %s is %v, %v", when, knob, now, err)
		}
	}
	free := b.fill(t, "/dev/shm", 0)
	if err := h.Claim(ctx, "c1", "ana@desk"); err != nil { // its note is for people only
		t.Fatal(err)
	}
	_, err := h.Apply(ctx, "c1", []lab.Change{change})
	says(t, err, "web: apply: ", "no space left on device")
	mustBe("4096", "a change that could not be noted")
	if _, err := h.Restore(ctx); err != nil {
		t.Errorf("nothing has to be put back, but: %v", err)
	}
	free()
	if _, err := h.Apply(ctx, "c1", []lab.Change{change}); err != nil {
		t.Error(err)
	}
	mustBe("1234", "a change")
	defer b.fill(t, "/dev/shm", 0)()
	restored, err := h.Restore(ctx)
	t.Logf("restore on a full disk: %+v, %v", restored, err)
	mustBe("4096", "a restore on a full disk")
	b.root(t, "rm -f /dev/shm/filler")
	if _, err := h.Restore(ctx); err != nil {
		t.Error(err)
	}
	if left, err := h.Pending(ctx); err != nil || len(left) > 0 {
		t.Errorf("pending %v, %v", left, err)
	}
}
