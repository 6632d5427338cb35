package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// socketPath is where the fake systemd listens. A container has no real one.
const socketPath = "/run/chaos-systemd.socket"

// service is a unit of the fake systemd: a process that sleeps under its name.
type service struct {
	process *exec.Cmd // nil = stopped
	ended   chan struct{}
}

// systemd answers what systemctl asks. What it starts is its own child, so that it belongs to nobody's session.
type systemd struct {
	units map[string]*service
	nice  unix.Rlimit // what a unit gets that has no drop-in
}

// serveSystemd has one service that runs and one that does not, and answers one call after the other.
func serveSystemd(ctx context.Context) error {
	s := systemd{units: map[string]*service{"chaosd.service": {}, "idled.service": {}}}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &s.nice); err != nil {
		return err
	}
	if err := s.start(ctx, "chaosd.service"); err != nil {
		return err
	}
	if err := os.MkdirAll("/run/systemd/system", 0o755); err != nil { // sd_booted(3)
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socketPath)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		s.serve(ctx, c)
	}
}

// reply is what systemctl prints, and its exit code.
type reply struct {
	Output string `json:"output"`
	Exit   int    `json:"exit"`
}

func (s systemd) serve(ctx context.Context, c net.Conn) {
	defer c.Close()                                    //nolint:errcheck // nothing more is sent
	_ = c.SetDeadline(time.Now().Add(5 * time.Second)) // who asks may be killed
	var args []string
	if err := json.NewDecoder(c).Decode(&args); err != nil {
		return
	}
	r := reply{}
	out, err := s.call(ctx, args)
	if r.Output = out; err != nil {
		r = reply{err.Error() + "\n", 1}
	}
	_ = json.NewEncoder(c).Encode(r)
}

// call does what a command line of systemctl says.
func (s systemd) call(ctx context.Context, args []string) (string, error) {
	verb, unit := "", ""
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "-"):
		case verb == "":
			verb = a
		default:
			unit = a
		}
	}
	if verb == "daemon-reload" || verb == "list-unit-files" {
		return "", nil
	}
	if verb == "show" {
		return s.show(unit), nil
	}
	u := s.units[unit]
	if u == nil {
		return "", fmt.Errorf("Unit %s not found", unit) //nolint:staticcheck // systemctl's own words
	}
	var err error
	if verb == "stop" || verb == "restart" {
		u.stop()
	}
	if verb == "start" || verb == "restart" {
		err = s.start(ctx, unit)
	}
	return "", err
}

func (s systemd) show(unit string) string {
	u := s.units[unit]
	if u == nil {
		return "Id=" + unit + "\nLoadState=not-found\nActiveState=inactive\n"
	}
	state, pid := "inactive", 0
	if u.process != nil {
		state, pid = "active", u.process.Process.Pid
	}
	limit := s.limit(unit)
	return fmt.Sprintf("Id=%s\nLoadState=loaded\nActiveState=%s\nMainPID=%d\nType=simple\nRemainAfterExit=no\nTriggeredBy=\nCanStart=yes\nCanStop=yes\n"+
		"LimitNOFILE=%d\nLimitNOFILESoft=%d\n", unit, state, pid, limit.Max, limit.Cur)
}

func (s systemd) start(ctx context.Context, unit string) error {
	u := s.units[unit]
	if u.process != nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "/bin/sleep", "infinity")
	cmd.Args[0] = strings.TrimSuffix(unit, ".service")
	if err := cmd.Start(); err != nil {
		return err
	}
	limit := s.limit(unit)
	u.process, u.ended = cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(u.ended)
	}()
	return unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil)
}

func (u *service) stop() {
	if u.process == nil {
		return
	}
	_ = u.process.Process.Kill()
	<-u.ended
	u.process = nil
}

// limit is that of the unit's drop-ins, "N" or "SOFT:HARD".
func (s systemd) limit(unit string) unix.Rlimit {
	limit := s.nice
	files, _ := filepath.Glob(filepath.Join("/run/systemd/system", unit+".d", "*.conf"))
	for _, file := range files {
		text, _ := os.ReadFile(file) // one that has just gone sets nothing
		for line := range strings.Lines(string(text)) {
			value, ok := strings.CutPrefix(strings.TrimSpace(line), "LimitNOFILE=")
			if !ok {
				continue
			}
			soft, hard, both := strings.Cut(value, ":")
			if !both {
				hard = soft
			}
			limit.Cur, _ = strconv.ParseUint(soft, 10, 64)
			limit.Max, _ = strconv.ParseUint(hard, 10, 64)
		}
	}
	return limit
}

// systemctl asks the fake systemd and returns the exit code.
func systemctl(ctx context.Context, args []string, out io.Writer) (int, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", socketPath)
	if err != nil {
		return 1, err
	}
	defer c.Close() //nolint:errcheck // all is read
	if err := json.NewEncoder(c).Encode(args); err != nil {
		return 1, err
	}
	var r reply
	if err := json.NewDecoder(c).Decode(&r); err != nil {
		return 1, err
	}
	_, err = io.WriteString(out, r.Output)
	return r.Exit, err
}
