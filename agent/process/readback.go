package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
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
	s.Serving, s.Prefix, s.Master, s.Port = sv.asked.State, sv.prefix, sv.pid, sv.asked.Port
	if sv.asked.Command != nil || sv.asked.Template {
		s.Files = slices.Sorted(maps.Keys(sv.files()))
	}
	read := sv.readNginx
	if sv.asked.Command != nil {
		read = sv.readCommand
	}
	if err := read(ctx); err != nil {
		return err
	}
	return sv.describe(ctx)
}

// readNginx reads back what nginx has in force.
func (sv *serving) readNginx(ctx context.Context) error {
	s := &sv.server
	dump, err := parseDump(s.Effective)
	if err != nil {
		return err
	}
	dump = dump.sited(sv.asked)
	if s.Workers, err = sv.workers(ctx, dump); err != nil {
		return err
	}
	if err := sv.limits(s.Workers); err != nil {
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
	case e.Knob.Name == "listen.backlog" && lab.Switched(e.Value) != "off":
		found.Text = strconv.Itoa(s.Backlog)
	case isParameter:
		if found = d.parameter(parameter); found.Absent {
			found = lab.Value{Text: "off"}
		}
	default:
		return d.directive(e)
	}
	return found, lab.Switched(lab.Unquoted(e.Value)) == lab.Switched(found.Text)
}

func shown(v lab.Value) string {
	if v.Absent {
		return "nothing"
	}
	return strconv.Quote(v.Text)
}

// limits reads the limits that all the workers have.
func (sv *serving) limits(pids []int) error {
	s := &sv.server
	for i, pid := range pids {
		files, processes, err := limitsOf(pid)
		if s.Tree && i > 0 && vanished(err) {
			continue // its processes come and go
		}
		if err != nil {
			return err
		}
		soft, hard, nproc := int(files.Soft), int(files.Hard), int(processes.Soft)
		if i > 0 && (soft != s.NofileSoft || hard != s.NofileHard || nproc != s.NprocSoft) {
			return fmt.Errorf("workers %d and %d have different limits", pids[0], pid)
		}
		s.NofileSoft, s.NofileHard, s.NprocSoft = soft, hard, nproc
	}
	return nil
}

// limitsOf reads the limits in force of a process.
func limitsOf(pid int) (files, processes lab.Rlimit, err error) {
	path := fmt.Sprintf("/proc/%d/limits", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return files, processes, err
	}
	all, err := lab.ParseLimits(text)
	if err != nil {
		return files, processes, fmt.Errorf("read %s: %w", path, err)
	}
	files, okFiles := all[lab.LimitOpenFiles]
	processes, okProcesses := all[lab.LimitProcesses]
	if !okFiles || !okProcesses {
		return files, processes, fmt.Errorf("read %s: no limit of open files or of processes", path)
	}
	return files, processes, nil
}
