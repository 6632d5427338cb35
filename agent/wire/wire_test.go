package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

var hash = strings.Repeat("0123456789abcdef", 4)

func TestGreetingIsFoundAfterNoiseAndNothingMoreIsRead(t *testing.T) {
	for _, noise := range []string{"", "Welcome!\n\nLast login: today\n", "no line end: ", "ngxlab-agent/x\n"} {
		var stream bytes.Buffer
		stream.WriteString(noise)
		if err := WriteGreeting(&stream, Greeting{Protocol: 7, Hash: hash}); err != nil {
			t.Fatal(err)
		}
		stream.WriteString("the rest")
		g, before, err := ReadGreeting(&stream)
		if err != nil || g.Protocol != 7 || g.Hash != hash || string(before) != noise {
			t.Errorf("after %q: %+v, noise %q, %v", noise, g, before, err)
		}
		if stream.String() != "the rest" {
			t.Errorf("left %q", stream.String())
		}
	}
}

func TestStreamWithoutGreetingIsAnErrorWithWhatItSaid(t *testing.T) {
	_, noise, err := ReadGreeting(strings.NewReader("bash: agent: not found\n"))
	if !errors.Is(err, ErrNoGreeting) || !errors.Is(err, io.EOF) || string(noise) != "bash: agent: not found\n" {
		t.Errorf("%v, noise %q", err, noise)
	}
	endless := strings.NewReader(strings.Repeat("talk\n", 100_000))
	_, noise, err = ReadGreeting(endless)
	if !errors.Is(err, ErrNoGreeting) || len(noise) != noiseLimit {
		t.Errorf("%v, %d bytes of noise", err, len(noise))
	}
}

func FuzzReadGreeting(f *testing.F) {
	f.Add([]byte("motd\nngxlab-agent/1 " + hash + "\nrest"))
	f.Add([]byte("ngxlab-agent/999999999999 " + hash + "\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		g, noise, err := ReadGreeting(bytes.NewReader(stream))
		if !bytes.HasPrefix(stream, noise) {
			t.Errorf("noise %q is not the beginning of %q", noise, stream)
		}
		if err == nil && len(g.Hash) != 64 {
			t.Errorf("hash %q", g.Hash)
		}
	})
}

func TestErrorKeepsItsKindThroughWrapping(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := From(fmt.Errorf("claim: %w", Locked(Lock{Owner: "ana@desk", Campaign: "c1", Since: since})), KindFailed)
	if err.Kind != KindLocked || err.Lock.Campaign != "c1" {
		t.Errorf("%+v", err)
	}
	if want := "claim: in use by ana@desk, campaign c1, since 2026-01-02T03:04:05Z"; err.Message != want {
		t.Errorf("message %q, want %q", err.Message, want)
	}
	if From(nil, KindFailed) != nil {
		t.Error("an error of nil")
	}
	if got := From(io.EOF, KindForeign); got.Kind != KindForeign || got.Message != "EOF" {
		t.Errorf("%+v", got)
	}
}
