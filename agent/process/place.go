package process

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Where certificate and key lie in the directory of a server.
const (
	certificateFile = "tls/cert.pem"
	keyFile         = "tls/key.pem"
)

// What stands for the fresh directory and for that of the build.
const (
	placePrefix = "{prefix}"
	placeBuild  = "{build}"
)

// place puts what is known now in the place of the words in braces.
func (sv *serving) place(text string) string { return sv.words().Replace(text) }

func (sv *serving) words() *strings.Replacer {
	s := sv.asked
	return strings.NewReplacer(
		placePrefix, sv.prefix, placeBuild, s.Build.Dir, "{binary}", s.Build.Binary, "{user}", s.User,
		"{port}", strconv.Itoa(s.Port), "{status_port}", strconv.Itoa(s.StatusPort),
		"{cert}", filepath.Join(sv.prefix, certificateFile), "{key}", filepath.Join(sv.prefix, keyFile),
	)
}

// placed is place for a list.
func (sv *serving) placed(list []string) []string {
	words, out := sv.words(), make([]string, len(list))
	for i, text := range list {
		out[i] = words.Replace(text)
	}
	return out
}

// placeless is a text of the server with {prefix} for the fresh directory and {build} for the build's, so that equal
// servers have equal texts.
func (sv *serving) placeless(text []byte) string {
	out := strings.ReplaceAll(string(text), sv.prefix, placePrefix)
	if dir := sv.asked.Build.Dir; dir != "" {
		out = strings.ReplaceAll(out, dir, placeBuild)
	}
	return out
}
