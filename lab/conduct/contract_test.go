package conduct

import (
	"testing"

	"ngxlab/internal/testlab"
)

// The fake keeps the parts of the hosts' contract that it is trusted with. It has no processes, files or lock: those are
// for the real hosts alone.
func TestFakeHostKeepsItsPartOfTheContract(t *testing.T) {
	f := newFakeHost(t)
	testlab.TunedContract(t, f, somaxconn)
	testlab.ClockContract(t, f)
	f.mustBeAsBefore()
}
