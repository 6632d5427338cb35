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
	s.Serving, s.Prefix, s.Master = sv.asked.State, sv.prefix, sv.master.pid
	dump, err := parseDump(s.Effective)
	if err != nil {
		return err
	}
	if s.Workers, err = sv.workers(ctx, dump); err != nil {
		return err
	}
	if s.NofileSoft, s.NofileHard, err = openFileLimit(s.Workers[0]); err != nil {
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
		found := inForce(e, s, d)
		a := lab.Applied{
			Change:   lab.Change{Knob: e.Knob, To: lab.Value{Text: e.Value}, BestEffort: e.BestEffort},
			ReadBack: found, Differs: found.Absent || !same(e, found.Text),
		}
		if a.Differs && !e.BestEffort {
			differs = append(differs, fmt.Errorf("%s is not in force: asked %q, found %s", e.Knob, e.Value, shown(found)))
		}
		all = append(all, a)
	}
	return all, errors.Join(differs...)
}

// inForce reads a setting where it takes effect: a limit in the worker, the backlog in the socket, the rest in the dump.
func inForce(e lab.Setting, s lab.Server, d dump) lab.Value {
	parameter, isParameter := strings.CutPrefix(e.Knob.Name, "listen.")
	switch {
	case e.Knob.Kind == lab.KnobNofile, strings.HasSuffix(e.Knob.Name, "worker_rlimit_nofile"):
		return lab.Value{Text: strconv.Itoa(s.NofileSoft)}
	case e.Knob.Name == "listen.backlog":
		return lab.Value{Text: strconv.Itoa(s.Backlog)}
	case isParameter:
		return lab.Value{Text: d.parameter(parameter)}
	}
	args, found := d.value(e.Knob.Name)
	return lab.Value{Text: args, Absent: !found}
}

// same compares values as nginx reads them: spacing and quotes do not matter, nor how a parameter is switched.
func same(e lab.Setting, found string) bool {
	want, _ := parseDump("x " + e.Value + ";")
	if strings.HasPrefix(e.Knob.Name, "listen.") {
		return switched(e.Value) == switched(found)
	}
	return len(want) == 1 && want[0].args == found
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

// openFileLimit reads the limits in force of a process; -1 is unlimited.
func openFileLimit(pid int) (soft, hard int, err error) {
	path := fmt.Sprintf("/proc/%d/limits", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	soft, hard, err = parseOpenFileLimit(bytes.NewReader(text))
	if err != nil {
		return 0, 0, fmt.Errorf("read %s: %w", path, err)
	}
	return soft, hard, nil
}

// parseOpenFileLimit finds "Max open files  1024  20000  files" (Linux, fs/proc/base.c, proc_pid_limits).
func parseOpenFileLimit(r io.Reader) (soft, hard int, err error) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), "Max open files")
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
	return 0, 0, fmt.Errorf("no line of open files")
}

func limitValue(text string) (int, error) {
	if text == "unlimited" {
		return -1, nil
	}
	return strconv.Atoi(text)
}
