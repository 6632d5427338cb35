package knob

import (
	"errors"
	"io/fs"
	"os"
)

// step does one thing to a file, unless a test has it fail.
func (f files) step(name string, do func() error) error {
	if err := f.faults.fail(name); err != nil {
		return err
	}
	return do()
}

// put writes the content; a fault leaves half of it.
func (f files) put(file *os.File, content []byte) error {
	fault := f.faults.fail("file write")
	if fault != nil {
		content = content[:len(content)/2]
	}
	_, err := file.Write(content)
	return errors.Join(fault, err)
}

func (f files) rename(from, to string) error {
	return f.step("file rename", func() error { return os.Rename(from, to) })
}

// unlink removes a name, if it is there.
func (f files) unlink(path string) error {
	return f.step("file unlink", func() error { return removeIfThere(path) })
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes the names in a directory last.
func (f files) syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.step("file fsync of the directory", d.Sync), d.Close())
}
