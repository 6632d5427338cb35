package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ngxlab/lab"
)

// readBack fills in what is in force, and holds it against what was asked.
func (sv *serving) readBack(ctx context.Context) error {
	s := &sv.server
	s.Serving, s.Prefix, s.Master, s.Port = sv.asked.State, sv.prefix, sv.master.pid, sv.asked.Port
	dump, err := parseDump(s.Effective)
	if err != nil {
		return err
	}
	if s.Workers, err = sv.workers(ctx, dump); err != nil {
		return err
	}
	if err := sv.limits(); err != nil {
		return err
	}
	if s.Backlog, err = backlog(sv.asked.Port); err != nil {
		return err
	}
	s.ReadBack, err = compare(sv.asked, *s, dump)
	return err
}

// workers polls until every worker that is configured runs; "auto" is at least one.
func (sv *serving) workers(ctx context.Context, d dump) ([]int, error) {
	want := d.workers()
	ticks := time.NewTicker(serverPoll)
	defer ticks.Stop()
	for {
		pids, err := workersOf(sv.master.pid)
		if err != nil || len(pids) >= want {
			return pids, err
		}
		select {
		case <-sv.master.done:
			return nil, sv.died()
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d workers run: %w", len(pids), want, ctx.Err())
		case <-ticks.C:
		}
	}
}

// workersOf returns the children of a master that call themselves worker (nginx has helpers of its cache beside them),
// ascending.
func workersOf(master int) ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var pids []int
	for pid, p := range all {
		if p.parent != master || p.dead {
			continue
		}
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(title, []byte("worker process")) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// compare reads every expected setting back. One that differs is an error, unless it is a best effort.
func compare(asked lab.Serving, s lab.Server, d dump) ([]lab.Applied, error) {
	var all []lab.Applied
	var differs []error
	for _, e := range asked.Expect {
		found, same := inForce(e, s, d)
		a := lab.Applied{
			Change:   lab.Change{Knob: e.Knob, To: lab.Value{Text: e.Value, Absent: e.Absent}, BestEffort: e.BestEffort},
			ReadBack: found, Differs: !same,
		}
		if a.Differs && !e.BestEffort {
			differs = append(differs, fmt.Errorf("%s is not in force: asked %s, found %s", e.Knob, shown(a.Change.To), shown(found)))
		}
		all = append(all, a)
	}
	return all, errors.Join(differs...)
}

// inForce reads a setting where it takes effect, and whether it is what was asked: a limit in the workers, the backlog in
// the socket, the rest in the dump.
func inForce(e lab.Setting, s lab.Server, d dump) (found lab.Value, same bool) {
	parameter, isParameter := strings.CutPrefix(e.Knob.Name, "listen.")
	switch {
	case e.Absent && isParameter:
		found = d.parameter(parameter)
		return found, found.Absent
	case e.Absent:
		return d.directive(e)
	case e.Knob.Kind == lab.KnobNofile, strings.HasSuffix(e.Knob.Name, "worker_rlimit_nofile"):
		found.Text = strconv.Itoa(s.NofileSoft)
	case e.Knob.Kind == lab.KnobNproc:
		found.Text = strconv.Itoa(s.NprocSoft)
	case e.Knob.Name == "listen.backlog" && switched(e.Value) != "off":
		found.Text = strconv.Itoa(s.Backlog)
	case isParameter:
		if found = d.parameter(parameter); found.Absent {
			found = lab.Value{Text: "off"}
		}
	default:
		return d.directive(e)
	}
	return found, switched(e.Value) == switched(found.Text)
}

func switched(value string) string {
	switch value {
	case "true":
		return "on"
	case "false", "":
		return "off"
	}
	return value
}

func shown(v lab.Value) string {
	if v.Absent {
		return "nothing"
	}
	return strconv.Quote(v.Text)
}

// The lines of /proc/PID/limits (Linux, fs/proc/base.c, proc_pid_limits).
const (
	openFiles       = "Max open files"
	processesOfUser = "Max processes"
)

// limits reads the limits that all the workers have.
func (sv *serving) limits() error {
	s := &sv.server
	for i, pid := range s.Workers {
		soft, hard, err := limitOf(pid, openFiles)
		if err != nil {
			return err
		}
		nproc, _, err := limitOf(pid, processesOfUser)
		if err != nil {
			return err
		}
		if i > 0 && (soft != s.NofileSoft || hard != s.NofileHard || nproc != s.NprocSoft) {
			return fmt.Errorf("workers %d and %d have different limits", s.Workers[0], pid)
		}
		s.NofileSoft, s.NofileHard, s.NprocSoft = soft, hard, nproc
	}
	return nil
}

// limitOf reads a limit in force of a process; -1 is unlimited.
func limitOf(pid int, name string) (soft, hard int, err error) {
	path := fmt.Sprintf("/proc/%d/limits", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	soft, hard, err = parseLimit(bytes.NewReader(text), name)
	if err != nil {
		return 0, 0, fmt.Errorf("read %s: %w", path, err)
	}
	return soft, hard, nil
}

// parseLimit finds a line such as "Max open files  1024  20000  files".
func parseLimit(r io.Reader, name string) (soft, hard int, err error) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			continue
		}
		if soft, err = limitValue(fields[0]); err != nil {
			return 0, 0, err
		}
		hard, err = limitValue(fields[1])
		return soft, hard, err
	}
	return 0, 0, fmt.Errorf("no line %q", name)
}

func limitValue(text string) (int, error) {
	if text == "unlimited" {
		return -1, nil
	}
	return strconv.Atoi(text)
}
