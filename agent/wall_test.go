package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ngxlab/agent/process"
	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// TestWrongWallClockIsToldAndMovesNothingElse has an agent whose wall clock is ten minutes ahead.
func TestWrongWallClockIsToldAndMovesNothingElse(t *testing.T) {
	const ahead = 10 * time.Minute
	a := serve(t, Options{Dir: t.TempDir(), Exe: testlab.Agent(t), Hash: hash, Wall: func() time.Time { return time.Now().Add(ahead) }})
	a.post(t, wire.PathClaim, `{"campaign":"c1","owner":"ana"}`)
	off := func(what string, wall time.Time, slack time.Duration) {
		t.Helper()
		if d := time.Until(wall) - ahead; d > slack || d < -slack {
			t.Errorf("%s is %v beside the wall clock", what, d)
		}
	}
	var clock wire.Reply[wire.Clock]
	decode(t, a.post(t, wire.PathClock, `{}`)[0], &clock)
	off("the clock", time.Unix(0, clock.Result.WallNS), 5*time.Second)
	var sample wire.Line[lab.Sample]
	decode(t, a.post(t, wire.PathWatch, `{"once":true}`)[0], &sample)
	off("a sample", time.Unix(0, sample.Item.WallNS), 5*time.Second)
	var holder wire.Reply[lab.Holder]
	decode(t, a.post(t, wire.PathHolder, `{}`)[0], &holder)
	off("the holder's time", holder.Result.Since, 5*time.Second)

	a.post(t, wire.PathArm, `[{"argv":["true"]}]`)
	at := process.Now().Add(300 * time.Millisecond)
	fire, err := json.Marshal(wire.Fire{Armed: lab.Armed{ID: "1"}, At: at})
	if err != nil {
		t.Fatal(err)
	}
	var fired wire.Reply[[]lab.Process]
	decode(t, a.post(t, wire.PathFire, string(fire))[0], &fired)
	if fired.Error != nil || len(fired.Result) != 1 || fired.Result[0].Released < at || fired.Result[0].Released.Sub(at) > time.Second {
		t.Errorf("asked for %d: %+v", at, fired)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.NewDecoder(strings.NewReader(text)).Decode(into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
