package docker_test

import (
	"slices"
	"testing"

	"ngxlab/internal/testlab/dockerlab"
)

func TestUpTwiceIsTheSameLab(t *testing.T) {
	e, l, first := dockerlab.Lab(t, "web", "gen1", "gen2", "gen3")
	t.Log(first)
	again, err := e.Up(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first, again) {
		t.Errorf("the second time: %+v; first %+v", again, first)
	}
}
