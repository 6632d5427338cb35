package knob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// kernelFiles reads and writes the files of the kernel outside /proc/sys: below /sys, and the rest of /proc.
type kernelFiles struct {
	root string
	// wrote is called after a write, for trees that play the kernel's part; nil otherwise.
	wrote func(path string)
}

// checkKernelFile says what is wrong with the name of a sysfs knob, and what to name instead.
func checkKernelFile(name string) (reason, cure string) {
	sysctl, isSysctl := strings.CutPrefix(name, procSys+"/")
	switch {
	case filepath.Clean(name) != name || strings.ContainsRune(name, 0):
		return "not a path in its shortest form", fmt.Sprintf("write %q", filepath.Clean(name))
	case isSysctl:
		return "it is a sysctl", "set sysctl " + strings.Map(swapSeparators, sysctl)
	case !strings.HasPrefix(name, "/sys/") && !strings.HasPrefix(name, "/proc/"):
		return "not a path below /sys or /proc", "other files are set under files"
	}
	return "", ""
}

// ofProcess reports whether a path or pattern names what /proc has of a process.
func ofProcess(name string) bool {
	below, ok := strings.CutPrefix(name, "/proc/")
	first, _, _ := strings.Cut(below, "/")
	return ok && (first == "self" || first == "thread-self" || strings.Trim(first, "0123456789") == "" || strings.ContainsAny(first, `*?[\`))
}

func (k kernelFiles) path(id lab.KnobID) (string, error) {
	if reason, cure := checkKernelFile(id.Name); reason != "" {
		return "", fmt.Errorf("%s: %s: %s", id, reason, cure)
	}
	return filepath.Join(k.root, id.Name), nil
}

// read returns the value without white space at its ends, of a list of choices ("always [madvise] never") the chosen
// word; Absent when there is no such file.
func (k kernelFiles) read(_ context.Context, id lab.KnobID, _ lab.Value) (lab.Value, error) {
	path, err := k.path(id)
	if err != nil {
		return lab.Value{}, err
	}
	text, there, err := readText(id, path)
	if err != nil || !there {
		return lab.Value{Absent: err == nil}, err
	}
	if chosen, words := choices(text); words != nil {
		return lab.Value{Text: chosen}, nil
	}
	return lab.Value{Text: strings.TrimSpace(text)}, nil
}

// choices reads a list of which one word stands in brackets; words is nil when the text is no such list.
func choices(text string) (chosen string, words []string) {
	found := 0
	for _, word := range strings.Fields(text) {
		if inside, ok := strings.CutPrefix(word, "["); ok && strings.HasSuffix(inside, "]") {
			word = strings.TrimSuffix(inside, "]")
			chosen = word
			found++
		}
		words = append(words, word)
	}
	if found != 1 {
		return "", nil
	}
	return chosen, words
}

// write hands the value to the kernel. A word that a list of choices does not have is refused before.
func (k kernelFiles) write(_ context.Context, id lab.KnobID, to lab.Value) error {
	path, err := k.path(id)
	if err != nil {
		return err
	}
	text, _, err := readText(id, path)
	if err != nil {
		return err
	}
	if _, words := choices(text); words != nil && !slices.Contains(words, strings.TrimSpace(to.Text)) && !to.Absent {
		return fmt.Errorf("%s: write %q: it takes one of %s", id, to.Text, strings.Join(words, ", "))
	}
	if err := overwrite(id, path, to); err != nil {
		return err
	}
	if k.wrote != nil {
		k.wrote(path)
	}
	return nil
}

// probe has a fact for each file that a pattern matches (filepath.Match, sorted), or one.
func (k kernelFiles) probe(ctx context.Context, asked lab.Setting) []lab.KnobFact {
	reason, cure := checkKernelFile(asked.Knob.Name)
	if reason == "" && ofProcess(asked.Knob.Name) {
		reason, cure = "it is of a process, and processes come and go", "set it by a command knob, or where the process is started"
	}
	if reason != "" {
		return []lab.KnobFact{{Asked: asked, Knob: asked.Knob, Reason: reason, Cure: cure}}
	}
	if !strings.ContainsAny(asked.Knob.Name, `*?[`) {
		return []lab.KnobFact{k.fact(ctx, asked, k.one(asked.Knob.Name))}
	}
	matches, err := filepath.Glob(filepath.Join(k.root, asked.Knob.Name))
	if err != nil {
		return []lab.KnobFact{{Asked: asked, Knob: asked.Knob, Reason: "not a pattern: " + err.Error(), Cure: "close its brackets"}}
	}
	if len(matches) == 0 {
		return []lab.KnobFact{k.missing(asked, asked.Knob)}
	}
	var facts []lab.KnobFact
	for _, path := range matches {
		id := k.one("/" + strings.TrimPrefix(strings.TrimPrefix(path, k.root), "/"))
		if !slices.ContainsFunc(facts, func(f lab.KnobFact) bool { return f.Knob == id }) {
			facts = append(facts, k.fact(ctx, asked, id))
		}
	}
	return facts
}

// classNet has a link to each network interface that this network namespace has.
const classNet = "/sys/class/net/"

// one is the knob of a file by whatever path: that without symbolic links in its directories, of a network interface
// that below classNet. What is below /proc has no other path, but for what is of processes.
func (k kernelFiles) one(name string) lab.KnobID {
	id := lab.KnobID{Kind: lab.KnobSysfs, Name: name}
	if !strings.HasPrefix(name, "/sys/") {
		return id
	}
	id.Name = resolved(k.root, name)
	if device, inside, ok := strings.Cut(id.Name, "/net/"); ok {
		card, rest, deeper := strings.Cut(inside, "/")
		if deeper && resolved(k.root, classNet+card+"/x") == device+"/net/"+card+"/x" {
			id.Name = classNet + card + "/" + rest
		}
	}
	return id
}

// fact is that of one file.
func (k kernelFiles) fact(ctx context.Context, asked lab.Setting, id lab.KnobID) lab.KnobFact {
	fact := lab.KnobFact{Asked: asked, Knob: id, To: lab.Value{Text: tune.Normalise(id, asked.Value), Absent: asked.Absent}}
	path, err := k.path(id)
	if err == nil {
		fact.Now, err = k.read(ctx, id, lab.Value{})
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		fact.Reason, fact.Cure, fact.Privilege = "reading it is not permitted", "run as root", true
	case err != nil:
		fact.Reason, fact.Cure = "it cannot be read, so it could not be put back: "+err.Error(), "leave it out"
	case fact.Now.Absent:
		return k.missing(asked, id)
	case asked.Absent:
		fact.Reason, fact.Cure = "the kernel's own cannot be removed", "give it a value"
	default:
		fact.Reason, fact.Cure, fact.Privilege = unwritable(path)
	}
	if fact.Reason == "" {
		fact.Reason, fact.Cure = untakable(id.Name, fact.To.Text)
	}
	if fact.Reason == "" {
		fact.Reason, fact.Cure = unchoosable(path, fact.To.Text)
	}
	return fact
}

// missing is the fact of a file that is not there; its cure says how far the path goes.
func (k kernelFiles) missing(asked lab.Setting, id lab.KnobID) lab.KnobFact {
	upTo := filepath.Dir(id.Name)
	for upTo != "/" && !matchesAny(filepath.Join(k.root, upTo)) {
		upTo = filepath.Dir(upTo)
	}
	return lab.KnobFact{
		Asked: asked, Knob: id, Now: lab.Value{Absent: true}, To: lab.Value{Text: asked.Value, Absent: asked.Absent},
		Reason: "no such file on this host", Cure: "leave it out, or correct the path, of which " + upTo + " is there",
	}
}

func matchesAny(pattern string) bool {
	matches, err := filepath.Glob(pattern)
	return err == nil && len(matches) > 0
}

// unwritable says why a file of the kernel cannot be written; "" when it can.
func unwritable(path string) (reason, cure string, privilege bool) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o222 == 0 {
		return fmt.Sprintf("the kernel only shows it (mode %04o)", info.Mode().Perm()), "leave it out", false
	}
	switch err := writableNow(path); {
	case errors.Is(err, fs.ErrPermission):
		return "writing it is not permitted", "run as root", true
	case err != nil:
		return "it cannot be written: " + err.Error(), "leave it out, or set it where it is not mounted read-only", false
	}
	return "", "", false
}

// untakable says why no kernel takes a value in a file of that name; "" when that is not known.
func untakable(name, value string) (reason, cure string) {
	switch base := filepath.Base(name); {
	case slices.Contains([]string{"rps_cpus", "xps_cpus", "xps_rxqs", "smp_affinity", "default_smp_affinity"}, base):
		if strings.Trim(value, "0123456789abcdefABCDEF,") != "" {
			return fmt.Sprintf("%q is no mask of hexadecimal digits", value), "write it as in ff or 00000001,00000000"
		}
	case slices.Contains([]string{"mtu", "tx_queue_len", "rps_flow_cnt", "nr_requests", "read_ahead_kb"}, base):
		if value == "" || strings.Trim(value, "0123456789") != "" {
			return fmt.Sprintf("%q is no number", value), "write a number of decimal digits"
		}
	}
	return "", ""
}

// unchoosable says why a list of choices does not have a word; "" when it has, or when there is no list.
func unchoosable(path, word string) (reason, cure string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "" // it was readable a moment ago; writing tells
	}
	_, words := choices(string(text))
	if words == nil || slices.Contains(words, word) {
		return "", ""
	}
	return fmt.Sprintf("it does not take %q", word), "it takes one of " + strings.Join(words, ", ")
}

// writableNow asks the host whether this process may write a file, without opening it.
func writableNow(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS)
}
