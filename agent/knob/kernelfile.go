package knob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"ngxlab/lab"
)

// readText returns the text of a kernel's file, byte for byte; there is false when there is no such file.
func readText(id lab.KnobID, path string) (text string, there bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", id, err)
	}
	return string(b), true, nil
}

// overwrite hands a line to the kernel in one write, as it must be. The file is there, and stays.
func overwrite(id lab.KnobID, path string, to lab.Value) error {
	if to.Absent {
		return fmt.Errorf("%s: the kernel's own cannot be removed", id)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	_, err = f.WriteString(to.Text + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: write %q: %w", id, to.Text, err)
	}
	return nil
}
