package knob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	showTimeout = 10 * time.Second       // of systemctl's that only look
	jobTimeout  = 100 * time.Second      // of starting, stopping and restarting: systemd's own time-out is 90 s (DefaultTimeoutStopSec)
	jobPoll     = 100 * time.Millisecond // how often it is looked whether a unit is there yet
)

// systemctl talks to systemd through its program.
type systemctl struct {
	program string // "" = the first on the search path
	root    string
	euid    int
}

func newSystemctl(r Roots) systemctl {
	return systemctl{program: r.Systemctl, root: r.Root, euid: os.Geteuid()}
}

// find is the program, when systemd is what this host was started with (sd_booted(3)).
func (s systemctl) find() (string, error) {
	if info, err := os.Stat(filepath.Join(s.root, "run/systemd/system")); err != nil || !info.IsDir() {
		return "", errNoSystemd
	}
	if s.program != "" {
		return s.program, executable(s.program)
	}
	return findProgram("systemctl")
}

var errNoSystemd = errors.New("systemd does not run here")

// call runs systemctl and returns what it prints.
func (s systemctl) call(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	program, err := s.find()
	if err != nil {
		return "", err
	}
	end, err := runProgram(ctx, limit, append([]string{program, "--no-ask-password", "--no-pager"}, args...))
	if err = errors.Join(err, end.failure()); err != nil {
		return "", fmt.Errorf("systemctl %s: %w", strings.Join(args, " "), err)
	}
	return end.output, nil
}

// unitState is what systemd shows of a unit, by the names of its properties (org.freedesktop.systemd1(5)).
type unitState map[string]string

// shown are the properties asked for.
var shown = []string{"Id", "LoadState", "ActiveState", "SubState", "Job", "MainPID", "Type", "RemainAfterExit", "TriggeredBy", "CanStart",
	"CanStop", "LimitNOFILE", "LimitNOFILESoft", "LimitNPROC", "LimitNPROCSoft"}

// show returns the properties of a unit; of one that is not there, LoadState is "not-found".
func (s systemctl) show(ctx context.Context, unit string) (unitState, error) {
	text, err := s.call(ctx, showTimeout, "show", "--property="+strings.Join(shown, ","), "--", unit)
	if err != nil {
		return nil, err
	}
	state := unitState{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok && slices.Contains(shown, name) {
			state[name] = value
		}
	}
	if state["LoadState"] == "" || state["ActiveState"] == "" {
		return nil, fmt.Errorf("systemctl show %s: says no state%s", unit, lastLines(text))
	}
	return state, nil
}

func (u unitState) found() bool { return u["LoadState"] != "not-found" }

// active reports whether the unit is up, or on its way.
func (u unitState) active() bool {
	return slices.Contains([]string{"active", "reloading", "activating", "refreshing"}, u["ActiveState"])
}

// job starts, stops or restarts a unit, and returns when it is as it should be. The count of starts that systemd allows in
// a time is set to naught before: the lab must be able to put back what it found.
func (s systemctl) job(ctx context.Context, verb, unit string, ok func(unitState) bool) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	if verb != "stop" {
		_, _ = s.call(ctx, showTimeout, "reset-failed", "--", unit) // an error when there is nothing to reset
	}
	if _, err := s.call(ctx, jobTimeout, verb, "--", unit); err != nil {
		return err
	}
	return s.settled(ctx, jobTimeout, unit, ok)
}

// between reports whether systemd has yet to do something with the unit, of which ActiveState may not tell.
func (u unitState) between() bool {
	return u["Job"] != "" || strings.HasSuffix(u["ActiveState"], "activating") && u["SubState"] != "auto-restart"
}

// await waits for a job that a killed systemctl has handed over. What became of it the next reading tells.
func (s systemctl) await(ctx context.Context, unit string) {
	if _, err := s.find(); err == nil {
		_ = s.settled(ctx, jobTimeout, unit, func(state unitState) bool { return !state.between() })
	}
}

// settled waits until a unit is as it should be.
func (s systemctl) settled(ctx context.Context, limit time.Duration, unit string, ok func(unitState) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var state unitState
	for {
		now, err := s.show(ctx, unit)
		switch {
		case err == nil && ok(now):
			return nil
		case err == nil:
			state = now
		case ctx.Err() == nil:
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is %s: %w", unit, state["ActiveState"], ctx.Err())
		case <-time.After(jobPoll):
		}
	}
}

// vital are units whose loss could keep the lab, or anybody, from the host. A name ending in "*" stands for all that
// begin so.
var vital = []string{
	"ssh.service", "sshd.service", "ssh.socket", "sshd.socket", "ssh@*", "sshd@*", "dropbear*", "ngxlab*", "systemd-*", "dbus*", "user@*",
	"NetworkManager*", "networking.service", "network.service", "wicked*", "dhcpcd*", "tailscaled.service", "wg-quick@*", "openvpn*",
}

func isVital(unit string) bool {
	return slices.ContainsFunc(vital, func(v string) bool {
		begin, many := strings.CutSuffix(v, "*")
		return unit == v || many && strings.HasPrefix(unit, begin)
	})
}

// judge says why a unit cannot be started, stopped or restarted by the lab.
func (s systemctl) judge(ctx context.Context, unit string) (unitState, refusal) {
	state, err := s.show(ctx, unit)
	switch {
	case errors.Is(err, errNoSystemd):
		return nil, refusal{reason: err.Error(), cure: "use a command knob with apply, verify and revert"}
	case err != nil:
		return nil, refusal{reason: err.Error()}
	case isVital(unit) || isVital(state["Id"]):
		return state, refusal{reason: "never touched: the host could be lost to the lab", cure: "leave it out"}
	case state["LoadState"] == "masked":
		return state, refusal{reason: unit + " is masked", cure: "systemctl unmask " + unit}
	case !state.found():
		return state, refusal{reason: "there is no unit " + unit, cure: s.nearest(ctx, unit)}
	case state["LoadState"] != "loaded":
		return state, refusal{reason: unit + " cannot be loaded: " + state["LoadState"], cure: "systemctl status " + unit}
	}
	return state, refusal{}
}

// nearest names units that may have been meant.
func (s systemctl) nearest(ctx context.Context, unit string) string {
	stem, _, _ := strings.Cut(unit, ".")
	text, err := s.call(ctx, showTimeout, "list-unit-files", "--no-legend", "*"+stem[:min(5, len(stem))]+"*")
	var like []string
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && len(like) < 3 {
			like = append(like, name)
		}
	}
	if err != nil || like == nil {
		return "install it, or leave it out"
	}
	return "there is " + strings.Join(like, ", ")
}
