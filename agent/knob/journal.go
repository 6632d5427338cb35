package knob

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

const (
	journalName = "journal"
	// archiveName is where the last journal goes when all of it is settled.
	archiveName = "journal.restored"
	// damagedName is where a damaged journal goes when all is settled that it still proves; a number follows when there is one.
	damagedName = "journal.damaged"
	// ownerOnly is the mode of all that holds values: among them is the content of files that not everyone may read.
	ownerOnly = 0o600
)

// ErrJournal is returned for a journal that was damaged after it was written.
var ErrJournal = errors.New("damaged journal")

type recordKind string

// The life of an entry: original, then intent or touched and found for each write, perhaps foreign during a restore, at
// last settled.
const (
	originalRecord recordKind = "original" // the value before the lab's first write, opens an entry
	intentRecord   recordKind = "intent"   // a value about to be written
	touchedRecord  recordKind = "touched"  // another knob is about to be written, which may bring this value; Absent = any
	foundRecord    recordKind = "found"    // the value read back after the write
	foreignRecord  recordKind = "foreign"  // someone else's value that a restore is about to write over, and back
	settledRecord  recordKind = "settled"  // closes the entry
)

// record is one line of the journal.
type record struct {
	Kind     recordKind     `json:"kind"`
	Knob     lab.KnobID     `json:"knob"`
	Value    lab.Value      `json:"value"`
	Boot     string         `json:"boot,omitempty"`
	Campaign lab.CampaignID `json:"campaign,omitempty"`
	At       string         `json:"at,omitempty"` // RFC 3339, UTC
	Outcome  string         `json:"outcome,omitempty"`
}

// line is a record with the CRC-32C of its bytes.
type line struct {
	Sum    string          `json:"crc32c"`
	Record json.RawMessage `json:"record"`
}

// journal is the file and what it says.
type journal struct {
	entries []*entry // pending, oldest first
	length  int64    // bytes of whole lines; what follows is a torn line
	dir     *os.File
	file    *os.File // nil until something is appended
	named   bool     // the file's name is on the disk
	damage  error    // ErrJournal with the lines that are not as they were written; nil = none
	marked  bool     // what is in force tells that there are entries
	lost    bool     // there was more than the file says: nothing is to be deleted
	faults  faults

	readBack []held // since it was opened, in order
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(b []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)) }

func encode(rs []record) ([]byte, error) {
	var buf bytes.Buffer
	for _, r := range rs {
		text, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		text, err = json.Marshal(line{Sum: sum(text), Record: text})
		if err != nil {
			return nil, err
		}
		buf.Write(append(text, '\n'))
	}
	return buf.Bytes(), nil
}

func decode(text []byte) (record, error) {
	var l line
	var r record
	if err := json.Unmarshal(text, &l); err != nil {
		return r, err
	}
	if got := sum(l.Record); got != l.Sum {
		return r, fmt.Errorf("checksum %s, should be %s", got, l.Sum)
	}
	return r, json.Unmarshal(l.Record, &r)
}

// parseJournal reads a journal. A last line that was not written to its end (no newline, or holes that a power cut
// left) was never acted upon and is ignored; any other line that is not as it was written is damage, and the rest counts.
func parseJournal(r io.Reader) (*journal, error) {
	j := &journal{}
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return j, nil // text is empty or torn
		}
		if err != nil {
			return nil, err
		}
		rec, bad := decode(text)
		if bad == nil {
			bad = j.take(rec)
		}
		if bad != nil {
			if _, end := in.Peek(1); end != nil && bytes.IndexByte(text, 0) >= 0 {
				return j, nil
			}
			j.damage = errors.Join(j.damage, fmt.Errorf("line %d: %w: %w", n, ErrJournal, bad))
		}
		j.length += int64(len(text))
	}
}

// take brings the entries up to date with one record.
func (j *journal) take(r record) error {
	e := j.pending(r.Knob)
	switch {
	case r.Kind == originalRecord && e == nil:
		j.entries = append(j.entries, &entry{knob: r.Knob, original: r.Value, boot: r.Boot, campaign: r.Campaign, since: r.At})
	case r.Kind == originalRecord:
		return fmt.Errorf("second original of %s", r.Knob)
	case e == nil:
		return fmt.Errorf("%s of %s before its original", r.Kind, r.Knob)
	case r.Kind == intentRecord:
		e.open, e.foreign, e.own = &r.Value, nil, true
		e.add(r.Value)
	case r.Kind == touchedRecord && r.Value.Absent:
		e.unknown = true
	case r.Kind == touchedRecord:
		e.add(r.Value)
	case r.Kind == foundRecord:
		e.open, e.foreign, e.unknown = nil, nil, false
		e.add(r.Value)
	case r.Kind == foreignRecord:
		e.foreign = &r.Value
	case r.Kind == settledRecord:
		j.entries = slices.DeleteFunc(j.entries, func(p *entry) bool { return p == e })
	default:
		return fmt.Errorf("unknown record %q", r.Kind)
	}
	return nil
}

// opening is the records that open the entry of a knob with the first one given, none when it is open. A new start of
// the host has put back what an earlier boot left, unless the value ends with no boot, or a file of ours among the
// boot's configuration has set it again: then the original stays what it was.
func (j *journal) opening(first record) []record {
	e := j.pending(first.Knob)
	if e == nil {
		return []record{first}
	}
	if e.boot == first.Boot || !tune.Volatile(e.knob.Kind) {
		return nil
	}
	closed := record{Kind: settledRecord, Knob: e.knob, Outcome: lab.RestoreRebooted}
	if !j.setAgain(e, first.Value) {
		return []record{closed, first}
	}
	again := record{Kind: foundRecord, Knob: first.Knob, Value: first.Value}
	first.Value = e.original
	return []record{closed, first, again}
}

// setAgain reports whether a value of ours is found that a file of ours, not yet put back, names.
func (j *journal) setAgain(e *entry, found lab.Value) bool {
	if same(e.knob, found, e.original) || !e.isOurs(found) {
		return false
	}
	return slices.ContainsFunc(j.entries, func(f *entry) bool { return f.names(e.knob) })
}

// pending is the open entry of a knob, however its name is separated; nil when there is none.
func (j *journal) pending(id lab.KnobID) *entry {
	for _, e := range j.entries {
		if e.knob == id || sameKnob(e.knob, id) {
			return e
		}
	}
	return nil
}

// brought reports whether the value found before a change is there because the lab wrote another knob, and nobody this one.
func (j *journal) brought(c lab.Change, found lab.Value) bool {
	e := j.pending(c.Knob)
	return e != nil && !e.own && !coupled(c.Knob) && same(c.Knob, c.From, e.original) && e.isOurs(found)
}

// Journaled reports whether a directory has a journal, of which something may have to be put back.
func Journaled(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readJournal reads the journal of a directory. Its damage is no error.
func readJournal(dir string) (*journal, error) {
	path := filepath.Join(dir, journalName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &journal{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	defer f.Close() //nolint:errcheck // opened for reading
	j, err := parseJournal(f)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	if knobs := j.missing(dir); knobs != "" {
		j.lost = len(j.entries) == 0
		j.damage = errors.Join(j.damage, fmt.Errorf("%w: the lab has changed %s, of which it has no entry: bring the journal back from a copy, "+
			"or put back by hand what was changed and move away both the journal and %s", ErrJournal, knobs, inForceName))
	}
	if j.damage != nil {
		j.damage = located{path, j.damage}
	}
	return j, nil
}

// openJournal reads the journal of a directory whose lock the caller holds.
func openJournal(path string, dir *os.File, f faults) (*journal, error) {
	hide(path)
	j, err := readJournal(path)
	if err != nil {
		return nil, err
	}
	j.dir, j.faults = dir, f
	return j, nil
}

// hide takes from others what an earlier version let them read. Who cannot does not own the files, or cannot write to them.
func hide(dir string) {
	for _, name := range []string{journalName, archiveName, inForceName} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() != ownerOnly {
			_ = os.Chmod(path, ownerOnly)
		}
	}
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// commit appends records and returns when they are on the disk.
func (j *journal) commit(rs ...record) error { return j.add(rs, j.sync) }

// append writes records after the last whole line.
func (j *journal) append(rs ...record) error { return j.add(rs, func() error { return nil }) }

// add writes records after the last whole line; they count when finish, too, has done its part. What could not be
// brought to its place is taken back, for the next to write it anew: a second fsync would not tell of a failure of the
// first.
func (j *journal) add(rs []record, finish func() error) error {
	if len(rs) == 0 {
		return nil
	}
	n, err := j.put(rs)
	if err == nil {
		err = finish()
	}
	if err != nil {
		return fmt.Errorf("journal: %w", errors.Join(err, j.takeBack()))
	}
	j.length += int64(n)
	for _, r := range rs {
		if err := j.take(r); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return nil
}

// put writes records behind what counts, and returns their bytes.
func (j *journal) put(rs []record) (n int, err error) {
	text, err := encode(rs)
	if err == nil {
		err = j.open()
	}
	if err != nil {
		return 0, err
	}
	j.faults.reach("before append")
	fault := j.faults.fail("append")
	if fault != nil {
		text = text[:len(text)/2]
	}
	n, err = j.file.WriteAt(j.faults.tear(text), j.length)
	j.faults.reach("after append")
	return n, errors.Join(fault, err)
}

// takeBack cuts off what is behind all that counts. When it cannot, the file is opened anew, and so cut, before anything
// else is written.
func (j *journal) takeBack() error {
	if j.file == nil {
		return nil
	}
	err := errors.Join(j.faults.fail("truncate"), j.file.Truncate(j.length))
	if err != nil {
		err = errors.Join(err, j.file.Close())
		j.file = nil
	}
	return err
}

// sync returns when the file is on the disk, and its name.
func (j *journal) sync() error {
	j.faults.reach("before fsync")
	if err := errors.Join(j.faults.fail("fsync"), j.file.Sync()); err != nil {
		return err
	}
	if !j.named {
		if err := errors.Join(j.faults.fail("fsync of the directory"), j.dir.Sync()); err != nil {
			return err
		}
		j.named = true
	}
	j.faults.reach("after fsync")
	return nil
}

// open makes the file ready to be appended to.
func (j *journal) open() error {
	if j.file != nil {
		return nil
	}
	if err := j.faults.fail("open"); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(j.dir.Name(), journalName), os.O_WRONLY|os.O_CREATE, ownerOnly)
	if err != nil {
		return err
	}
	if err := file.Truncate(j.length); err != nil {
		return errors.Join(err, file.Close())
	}
	j.file = file
	return nil
}

// archive puts the journal aside, in the place of the one before; a damaged one where people can look at it.
func (j *journal) archive() error {
	if err := j.faults.fail("archive"); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	path := filepath.Join(j.dir.Name(), journalName)
	aside := j.archivePath()
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: %w", err)
	}
	if j.damage != nil {
		j.damage = fmt.Errorf("%w\nthe rest was put back, and the journal is now %s", j.damage, aside)
	}
	if err := errors.Join(j.faults.fail("fsync of the directory"), j.dir.Sync()); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}
