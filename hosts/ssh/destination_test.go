package ssh_test

import (
	"testing"

	"ngxlab/hosts/ssh"
)

func TestDestinationsAreReadInEveryForm(t *testing.T) {
	for text, want := range map[string]ssh.Destination{
		"web1":                    {Address: "web1"},
		"bench@web1":              {Address: "web1", User: "bench"},
		"bench@web1:2222":         {Address: "web1", User: "bench", Port: 2222},
		"a@b@web1":                {Address: "web1", User: "a@b"},
		"[::1]:22":                {Address: "::1", Port: 22},
		"[fe80::1%eth0]":          {Address: "fe80::1%eth0"},
		"me@[fe80::1%eth0]:2222":  {Address: "fe80::1%eth0", Port: 2222, User: "me"},
		"2001:db8::1":             {Address: "2001:db8::1"},
		"ssh://web1":              {Address: "web1"},
		"ssh://me@web1:2222":      {Address: "web1", User: "me", Port: 2222},
		"ssh://[::1]:2222/":       {Address: "::1", Port: 2222},
		" web1 ":                  {Address: "web1"},
		"10.0.0.1:22":             {Address: "10.0.0.1", Port: 22},
		"ssh://me@[fe80::1%25lo]": {Address: "fe80::1%lo", User: "me"},
	} {
		if got, err := ssh.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "@web1", "me@", "web1:", "web1:0", "web1:65536", "web1:http", "[::1", "[::1]x", "a b",
		"ssh://web1/path", "ssh://", "web1,web2"} {
		if got, err := ssh.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", text, got)
		}
	}
}

func FuzzDestinationIsReadBackAsWritten(f *testing.F) {
	for _, text := range []string{"web1", "me@web1:22", "[::1]:22", "ssh://me@web1:22", "::1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ssh.Parse(text)
		if err != nil {
			return
		}
		if again, err := ssh.Parse(d.String()); err != nil || again != d {
			t.Errorf("%q is %+v, written %q, which is %+v, %v", text, d, d.String(), again, err)
		}
	})
}
