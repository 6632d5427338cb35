package hosts

import (
	"testing"

	"ngxlab/internal/testlab"
)

func TestThisMachineKeepsTheContract(t *testing.T) {
	o := Options{Name: "here", Dir: testlab.StateDir(t), Agent: testlab.Agent(t)}
	testlab.HostContract(t, func(t testing.TB) testlab.Host {
		h, err := Local(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return h
	})
}
