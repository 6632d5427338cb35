package lab_test

import (
	"encoding/json"
	"testing"
	"time"

	"ngxlab/lab"
)

func TestDurationsComeBackFromJSONUnchanged(t *testing.T) {
	for ms := range 5000 {
		d := lab.Duration{Duration: time.Duration(ms)*time.Millisecond + time.Duration(ms)}
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back lab.Duration
		if err := json.Unmarshal(text, &back); err != nil || back != d {
			t.Fatalf("%v became %v through %s (%v)", d, back, text, err)
		}
	}
	var d lab.Duration
	if err := json.Unmarshal([]byte(`"10s"`), &d); err == nil {
		t.Error("a text is taken for a duration in seconds")
	}
}

func TestClockTranslatesLocalTimeToTheHosts(t *testing.T) {
	at := time.Now()
	c := lab.Clock{At: at, Host: 1000}
	if got := c.Instant(at.Add(time.Second)); got.Sub(1000) != time.Second {
		t.Errorf("a second later the host's clock reads %d", got)
	}
}
