package knob

import (
	"context"

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

// Roots are the places on a host where knobs are, so that a tree of ordinary files can stand in for them.
type Roots struct {
	ProcSys   string // /proc/sys; the boot id is kernel/random/boot_id below it unless BootID is set
	Root      string // of the files of file, sysfs and unit knobs: "/"
	BootID    string // a file
	Systemctl string // the program; "" = the first on the search path
}

// realRoots are those of this host.
func realRoots() Roots { return Roots{ProcSys: procSys, Root: "/"} }
