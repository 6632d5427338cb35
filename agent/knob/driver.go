package knob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ngxlab/lab"
)

// driver reads and writes the knobs of one kind on this host. A driver keeps no journal and judges nothing.
type driver interface {
	// probe says what the host has of the knob of a setting, and whether and as what it could have the setting's value;
	// it changes nothing. One fact, or for a pattern one per match.
	probe(ctx context.Context, s lab.Setting) []lab.KnobFact
	// read returns the present value; Absent when the host has no such knob. like is any value of that knob: a command's
	// tells how to verify it. Others do not need it.
	read(ctx context.Context, id lab.KnobID, like lab.Value) (lab.Value, error)
	// write puts a value in force in one step as far as the host can; the caller reads it back.
	write(ctx context.Context, id lab.KnobID, to lab.Value) error
}

// sweeper is a driver that keeps something beside a knob while it is changed.
type sweeper interface {
	// forget removes what is kept, when the knob is restored or left as it is.
	forget(ctx context.Context, id lab.KnobID) error
}

// holder is a driver that keeps the original itself beside a knob while it is changed.
type holder interface {
	// leftover is the path of something that is in the place of what would be kept; "" when there is nothing.
	leftover(id lab.KnobID) string
	// keeps reports whether the very original is there, of which the journal has the value.
	keeps(id lab.KnobID, original lab.Value) bool
}

// awaiter is a driver of knobs that change by themselves for a while, after who began it was killed.
type awaiter interface {
	// await returns when the knob stands still, or after a time.
	await(ctx context.Context, id lab.KnobID)
}

// Roots are the places on a host where knobs are, so that a tree of ordinary files can stand in for them.
type Roots struct {
	ProcSys   string // /proc/sys; the boot id is kernel/random/boot_id below it unless BootID is set
	Root      string // of the files of file, sysfs and unit knobs: "/"
	BootID    string // a file
	Systemctl string // the program; "" = the first on the search path
}

// bootIDFile is the file of the boot id.
func (r Roots) bootIDFile() string {
	if r.BootID != "" {
		return r.BootID
	}
	return filepath.Join(r.ProcSys, "kernel/random/boot_id")
}

// realRoots are those of this host.
func realRoots() Roots { return Roots{ProcSys: procSys, Root: "/"} }

// newDrivers makes the driver of every kind whose place is among the roots, for a keeper with its journal in dir.
func newDrivers(r Roots, dir string) map[string]driver {
	drivers := map[string]driver{}
	if r.ProcSys != "" {
		drivers[lab.KnobSysctl] = sysctls{root: r.ProcSys}
	}
	if r.Root != "" {
		drivers[lab.KnobSysfs] = kernelFiles{root: r.Root}
		drivers[lab.KnobFile] = filesBeside(r.Root, dir)
		drivers[lab.KnobCommand] = commands{}
		drivers[lab.KnobEthtool] = newInterfaces()
		drivers[lab.KnobService] = services{newSystemctl(r)}
		drivers[lab.KnobUnit] = units{newSystemctl(r)}
	}
	return drivers
}

// filesBeside are the files of a host with a journal in dir, which is none of them.
func filesBeside(root, dir string) files {
	f := newFiles(root)
	f.journals = dir
	if whole, err := filepath.EvalSymlinks(dir); err == nil {
		f.journals = whole
	}
	return f
}

// ErrKind is returned for a knob that is not set on a host through its journal.
var ErrKind = errors.New("not a knob of a host")

// driver is that of a kind of knobs.
func (k *Keeper) driver(kind string) (driver, error) {
	d, found := k.drivers[kind]
	if !found {
		return nil, ErrKind
	}
	return d, nil
}

// read returns the present value of a knob; like is as in driver.
func (k *Keeper) read(ctx context.Context, id lab.KnobID, like lab.Value) (lab.Value, error) {
	d, err := k.driver(id.Kind)
	if err != nil {
		return lab.Value{}, fmt.Errorf("%s: %w", id, err)
	}
	return d.read(ctx, id, like)
}

// look is read, but what someone has put in the place of a file is a value too: the text says what it is.
func (k *Keeper) look(ctx context.Context, id lab.KnobID, like lab.Value) (lab.Value, error) {
	v, err := k.read(ctx, id, like)
	var unfit unfitError
	if errors.As(err, &unfit) {
		return lab.Value{Text: string(unfit)}, nil
	}
	return v, err
}

// write puts a value in force.
func (k *Keeper) write(ctx context.Context, id lab.KnobID, to lab.Value) error {
	d, err := k.driver(id.Kind)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return d.write(ctx, id, to)
}

// errLeftover is of a knob without an entry beside which something is kept.
var errLeftover = errors.New("an earlier study kept it there, and its journal is lost")

// unkept is the error of a knob that is about to get its entry, when something stands where its original is to be kept.
func (k *Keeper) unkept(j *journal, id lab.KnobID) error {
	h, ok := k.drivers[id.Kind].(holder)
	if !ok || j.pending(id) != nil {
		return nil
	}
	if path := h.leftover(id); path != "" {
		return fmt.Errorf("%s: %s: %w: look at it, put it back or move it away", id, path, errLeftover)
	}
	return nil
}

// keepsOriginal reports whether putting back a knob's original brings back the very thing; knobs of most kinds are no things.
func (k *Keeper) keepsOriginal(e *entry) bool {
	h, ok := k.drivers[e.knob.Kind].(holder)
	return !ok || e.original.Absent || h.keeps(e.knob, e.original)
}

// sweep removes what a driver keeps beside a knob.
func (k *Keeper) sweep(ctx context.Context, id lab.KnobID) error {
	if s, ok := k.drivers[id.Kind].(sweeper); ok {
		return s.forget(ctx, id)
	}
	return nil
}

// await waits until the knobs of entries stand still.
func (k *Keeper) await(ctx context.Context, entries []*entry) {
	for _, e := range entries {
		if a, ok := k.drivers[e.knob.Kind].(awaiter); ok {
			a.await(ctx, e.knob)
		}
	}
}

// bootID tells one start of the host from another.
func (k *Keeper) bootID() (string, error) {
	text, err := os.ReadFile(k.boot)
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
