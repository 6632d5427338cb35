package lab_test

import (
	"testing"

	"ngxlab/lab"
)

func TestShownFitsALine(t *testing.T) {
	file, command := lab.KnobID{Kind: lab.KnobFile, Name: "/etc/x"}, lab.KnobID{Kind: lab.KnobCommand, Name: "c"}
	for _, c := range []struct {
		knob lab.KnobID
		text string
		want string
	}{
		{file, `{"mode":"0644","owner":"0:0","content":"abc"}`, "3 bytes, 0644 root"},
		{file, `{"content":"a"}`, "1 byte"},
		{file, `{"mode":"0600","owner":"33:33"}`, "content kept, 0600 33:33"},
		{command, `{"apply":["a"],"verify":["v"],"revert":["r"],"timeout_s":60,"applied":true}`, "applied"},
		{command, `{"apply":["a"],"verify":["v"],"revert":["r"],"timeout_s":60,"applied":false}`, "not applied"},
		{lab.KnobID{Kind: lab.KnobSysctl, Name: "net.ipv4.tcp_rmem"}, "1\t2\t3\n", "1 2 3"},
		{lab.KnobID{Kind: lab.KnobSysctl, Name: "kernel.hotplug"}, " \n", `""`},
		{lab.KnobID{Kind: lab.KnobNginx, Name: "ip_hash"}, "", `""`},
		{lab.KnobID{Kind: lab.KnobNginx, Name: "add_header"}, `X "a  b"`, `X "a  b"`},
	} {
		if got := lab.Shown(c.knob, lab.Value{Text: c.text}); got != c.want {
			t.Errorf("%s %q is shown as %q, want %q", c.knob, c.text, got, c.want)
		}
	}
	for text, want := range map[string]string{
		lab.Quoted(lab.KnobID{Kind: lab.KnobSysctl, Name: "net.ipv4.tcp_rmem"}, lab.Value{Text: "1\t2"}): `"1\t2"`,
		lab.Quoted(file, lab.Value{Text: `{"content":"a"}`}):                                             "1 byte",
		lab.Quoted(file, lab.Value{Absent: true}):                                                        "none",
	} {
		if text != want {
			t.Errorf("quoted as %s, want %s", text, want)
		}
	}
	if got := lab.Shown(file, lab.Value{Absent: true}); got != "none" {
		t.Errorf("nothing is shown as %q", got)
	}
}
