package lab

import "testing"

func TestValuesOfDirectivesAreReadAsNginxDoes(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{OnOff("true"), "on"}, {OnOff("false"), "off"}, {OnOff(""), ""}, {OnOff("4096"), "4096"},
		{Switched(""), "off"}, {Switched("true"), "on"}, {Switched("4096"), "4096"},
		{Unquoted("'1000'"), "1000"}, {Unquoted(` "auto" `), "auto"}, {Unquoted("1000"), "1000"}, {Unquoted(`''`), ""}, {Unquoted(`'`), `'`},
		{Unquoted(`'a' 'b'`), `'a' 'b'`}, {Unquoted(`"a\"b"`), `"a\"b"`}, {Unquoted(`'a"`), `'a"`},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
