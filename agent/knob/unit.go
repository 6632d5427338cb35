package knob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// units are knobs that are limits of systemd's units: "nginx.service.LimitNOFILE". A limit is set by a drop-in below
// /run, which ends with a boot, and is in force when the unit has been started anew: a unit that runs is restarted.
// The value is a number or "infinity", or "SOFT:HARD" where the two differ.
//
// Of a unit that runs, the value is what its main process has in /proc/PID/limits; its children's are not looked at.
// Of others it is what systemd would give it.
type units struct{ systemd systemctl }

// limitNames are the properties as /proc/PID/limits names them.
var limitNames = map[string]string{"LimitNOFILE": lab.LimitOpenFiles, "LimitNPROC": lab.LimitProcesses}

const infinity = "infinity"

// unitLimit is a limit of a unit.
type unitLimit struct{ unit, property string }

func parseUnit(id lab.KnobID) (unitLimit, error) {
	unit, property, ok := tune.UnitProperty(id.Name)
	if id.Kind != lab.KnobUnit || !ok || limitNames[property] == "" {
		return unitLimit{}, fmt.Errorf("%s: not a limit of a unit", id)
	}
	return unitLimit{unit, property}, nil
}

// read returns the limit; Absent when there is no such unit, or no systemd.
func (u units) read(ctx context.Context, id lab.KnobID, _ lab.Value) (lab.Value, error) {
	l, err := parseUnit(id)
	if err != nil {
		return lab.Value{}, err
	}
	if _, err := u.systemd.find(); err != nil {
		return lab.Value{Absent: true}, nil
	}
	state, err := u.systemd.show(ctx, l.unit)
	if err != nil {
		return lab.Value{}, fmt.Errorf("%s: %w", id, err)
	}
	v, err := u.value(l, state)
	if err != nil {
		return lab.Value{}, fmt.Errorf("%s: %w", id, err)
	}
	return v, nil
}

// value is that of a unit of which systemd has been asked.
func (u units) value(l unitLimit, state unitState) (lab.Value, error) {
	if !state.found() {
		return lab.Value{Absent: true}, nil
	}
	if pid := state["MainPID"]; state.active() && pid != "" && pid != "0" {
		path := filepath.Join(u.systemd.root, "proc", pid, "limits")
		text, err := os.ReadFile(path)
		if err != nil {
			return lab.Value{}, err
		}
		return limitIn(text, limitNames[l.property])
	}
	hard, soft := state[l.property], state[l.property+"Soft"]
	if hard == "" {
		return lab.Value{}, fmt.Errorf("systemd does not tell %s of %s", l.property, l.unit)
	}
	if soft == "" {
		soft = hard
	}
	return lab.Value{Text: joined(soft, hard)}, nil
}

// limitIn is a limit in the text of /proc/PID/limits.
func limitIn(text []byte, name string) (lab.Value, error) {
	all, err := lab.ParseLimits(text)
	if err != nil {
		return lab.Value{}, err
	}
	limit, known := all[name]
	if !known {
		return lab.Value{}, fmt.Errorf("no %q among the limits of the process", name)
	}
	return lab.Value{Text: joined(strconv.FormatInt(limit.Soft, 10), strconv.FormatInt(limit.Hard, 10))}, nil
}

// joined writes a limit; older systemds show infinity as the number that stands for it.
func joined(soft, hard string) string {
	for _, text := range []*string{&soft, &hard} {
		if *text == "-1" || *text == "18446744073709551615" {
			*text = infinity
		}
	}
	if soft == hard {
		return hard
	}
	return soft + ":" + hard
}

// dropIn is the file that sets a limit.
func (u units) dropIn(l unitLimit) string {
	return filepath.Join(u.systemd.root, "run/systemd/system", l.unit+".d", "90-ngxlab-"+l.property+".conf")
}

// beforeMark begins the line of a drop-in that says what the limit was without it.
const beforeMark = "# before: "

// content is the text of a drop-in.
func (l unitLimit) content(to, before string) string {
	return "# Made by ngxlab for a campaign, and removed by `ngxlab restore`.\n" + beforeMark + before + "\n" +
		"[Service]\n" + l.property + "=" + to + "\n# End of what ngxlab made.\n"
}

// before is what a drop-in says the limit was without it; "" when there is no drop-in.
func before(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, beforeMark); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// write makes the drop-in, or removes it when the value is what the unit had without it, and restarts the unit when it
// runs. A killed write leaves a drop-in, which forget removes.
func (u units) write(ctx context.Context, id lab.KnobID, to lab.Value) error {
	l, err := parseUnit(id)
	if err != nil {
		return err
	}
	if to.Absent || checkLimitText(to.Text) != nil {
		return fmt.Errorf("%s: %q is no limit", id, to.Text)
	}
	if err := u.set(ctx, l, to.Text); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

func (u units) set(ctx context.Context, l unitLimit, to string) error {
	state, err := u.systemd.show(ctx, l.unit)
	if err != nil {
		return err
	}
	if !state.found() {
		return fmt.Errorf("there is no unit %s", l.unit)
	}
	was := before(u.dropIn(l))
	if was == "" {
		now, err := u.value(l, state)
		if err != nil {
			return err
		}
		was = now.Text
	}
	if to == was {
		err = removeDropIn(u.dropIn(l))
	} else {
		err = makeDropIn(u.dropIn(l), l.content(to, was))
	}
	if err == nil {
		_, err = u.systemd.call(ctx, showTimeout, "daemon-reload")
	}
	if err != nil || !state.active() {
		return err
	}
	err = u.systemd.job(ctx, "restart", l.unit, func(state unitState) bool { return state["ActiveState"] == "active" })
	if err != nil {
		return err
	}
	_ = u.systemd.settled(ctx, limitsTimeout, l.unit, func(state unitState) bool { // the caller reads it back
		now, err := u.value(l, state)
		return err == nil && now.Text == to
	})
	return nil
}

// limitsTimeout is how long the main process of a unit may take to get its limits: it is there a moment before.
const limitsTimeout = 2 * time.Second

func makeDropIn(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp := beside(path).temp
	if err := os.WriteFile(temp, []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// removeDropIn removes a drop-in, and its directory when nothing else is in it.
func removeDropIn(path string) error {
	if err := errors.Join(removeIfThere(path), removeIfThere(beside(path).temp)); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(path)) // others may have files there
	return nil
}

// forget removes a drop-in that is still there: of a killed write, or beside a value of someone else. What runs is left
// alone.
func (u units) forget(ctx context.Context, id lab.KnobID) error {
	l, err := parseUnit(id)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Dir(u.dropIn(l))); err != nil {
		return nil
	}
	made := before(u.dropIn(l)) != ""
	err = removeDropIn(u.dropIn(l))
	if made && err == nil {
		_, err = u.systemd.call(ctx, showTimeout, "daemon-reload")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

func (u units) await(ctx context.Context, id lab.KnobID) {
	if l, err := parseUnit(id); err == nil {
		u.systemd.await(ctx, l.unit)
	}
}

func (u units) probe(ctx context.Context, asked lab.Setting) []lab.KnobFact {
	return oneFact(ctx, asked, u.examine)
}

func (u units) examine(ctx context.Context, fact *lab.KnobFact) refusal {
	fact.To.Text = strings.TrimSpace(fact.To.Text)
	l, err := parseUnit(fact.Asked.Knob)
	if err != nil {
		return refusal{reason: err.Error(), cure: "write UNIT.service.LimitNOFILE or UNIT.service.LimitNPROC"}
	}
	if err := checkLimitText(fact.To.Text); err != nil || fact.To.Absent {
		return refusal{reason: fmt.Sprintf("%q is no limit", fact.To.Text), cure: "write a number or infinity"}
	}
	state, r := u.systemd.judge(ctx, l.unit)
	if r.is() {
		return r
	}
	if id := state["Id"]; id != "" {
		l.unit = id
		fact.Knob.Name = id + "." + l.property
	}
	if fact.Now, err = u.value(l, state); err != nil {
		return refusal{reason: err.Error()}
	}
	if state.active() {
		fact.Note = l.unit + " is restarted, for a limit is in force only for what is started after"
	}
	switch {
	case fact.Now == fact.To:
		return refusal{}
	case state.active() && (state["CanStart"] == "no" || state["CanStop"] == "no"):
		return refusal{reason: l.unit + " cannot be restarted by hand", cure: "leave it out"}
	case u.systemd.euid != 0:
		return needsRoot("setting limits of units")
	}
	return u.beyond(l, fact.To.Text)
}

// checkLimitText accepts "N", "infinity" and "SOFT:HARD" of these (systemd.exec(5)).
func checkLimitText(text string) error {
	soft, hard, both := strings.Cut(text, ":")
	if !both {
		hard = soft
	}
	for _, part := range []string{soft, hard} {
		if _, err := strconv.ParseUint(part, 10, 63); err != nil && part != infinity {
			return err
		}
	}
	return nil
}

// beyond refuses more open files than the kernel lets any process have.
func (u units) beyond(l unitLimit, to string) refusal {
	if l.property != "LimitNOFILE" {
		return refusal{}
	}
	text, err := os.ReadFile(filepath.Join(u.systemd.root, "proc/sys/fs/nr_open"))
	if err != nil {
		return refusal{reason: "fs.nr_open: " + err.Error()}
	}
	most, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return refusal{reason: "fs.nr_open: " + err.Error()}
	}
	_, hard, both := strings.Cut(to, ":")
	if !both {
		hard = to
	}
	if n, err := strconv.ParseUint(hard, 10, 64); err != nil || n > most {
		return refusal{reason: fmt.Sprintf("above fs.nr_open, %d, the most that a process may have open", most),
			cure: fmt.Sprintf("write at most %d, or raise fs.nr_open before", most)}
	}
	return refusal{}
}
