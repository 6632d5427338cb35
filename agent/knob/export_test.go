package knob

import (
	"bytes"
	"io"

	"ngxlab/lab"
)

// KillAt makes the keeper call at at every boundary between two effects.
func (k *Keeper) KillAt(at func(point string)) { k.faults.at = at }

// Tear makes the keeper hand what torn makes of it to the journal instead of whole lines.
func (k *Keeper) Tear(torn func([]byte) []byte) { k.faults.torn = torn }

// Kernel makes wrote play the kernel's part after each write.
func (k *Keeper) Kernel(wrote func(path string)) {
	s := k.drivers[lab.KnobSysctl].(sysctls)
	s.wrote = wrote
	k.drivers[lab.KnobSysctl] = s
}

// ParseJournal returns the number of pending entries and the bytes of whole lines.
func ParseJournal(r io.Reader) (entries int, length int64, err error) {
	j, err := parseJournal(r)
	if err != nil {
		return 0, 0, err
	}
	return len(j.entries), j.length, nil
}

// EncodeForFuzz makes a valid journal of one entry with the value.
func EncodeForFuzz(name, value string) []byte {
	r := record{Kind: originalRecord, Boot: "b", Campaign: "c"}
	r.Knob.Kind, r.Knob.Name, r.Value.Text = "sysctl", name, value
	i := r
	i.Kind, i.Value.Text = intentRecord, value+"1"
	text, err := encode([]record{r, i})
	if err != nil {
		panic(err)
	}
	return bytes.Clone(text)
}
