package knob

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// located is an error with the path of the journal before each of its lines.
type located struct {
	path string
	err  error
}

func (l located) Error() string {
	return "journal " + l.path + ": " + strings.ReplaceAll(l.err.Error(), "\n", "\njournal "+l.path+": ")
}

func (l located) Unwrap() error { return l.err }

// archivePath is where the journal goes. A damaged one takes no other's place.
func (j *journal) archivePath() string {
	if j.damage == nil {
		return filepath.Join(j.dir.Name(), archiveName)
	}
	first := filepath.Join(j.dir.Name(), damagedName)
	path := first
	for n := 1; ; n++ {
		if _, err := os.Lstat(path); err != nil {
			return path
		}
		path = fmt.Sprintf("%s.%d", first, n)
	}
}
