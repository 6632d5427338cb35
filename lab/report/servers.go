package report

import (
	"fmt"
	"strings"

	"ngxlab/lab"
	"ngxlab/templates"
)

// serverTable is what answered in each state: one row per target and state, without the columns that nobody fills.
func (s *study) serverTable() *tableBuilder {
	t := newTable("state", "build", "answers", "TLS", "user", "passes to", "requests counted by", "configuration")
	for _, v := range s.Plan.Servings {
		if state, known := s.Plan.State(v.State); !known || state.Control {
			continue
		}
		name := v.State
		if len(s.targets) > 1 {
			name = string(v.Target) + ", " + name
		}
		read, _ := s.readServer(v.Target, v.State)
		t.row(plain(name), plain(s.buildWords(v)), s.answers(v), plain(tlsWords(v, read)), plain(firstOf(read.User, v.User)),
			plain(s.upstreamWords(v)), plain(firstOf(v.CountedBy(), "nothing: the rules that compare counts are not evaluated")), configWords(read))
	}
	t.dropEmpty()
	return t
}

// readServer is the server of a target and state as read back.
func (s *study) readServer(target lab.HostName, state string) (lab.Server, bool) {
	for _, r := range s.Runs {
		if r.Part == s.lastPart() && r.Cell.Target == target && r.Cell.State == state && r.Server.EffectiveSHA != "" {
			return r.Server, true
		}
	}
	return lab.Server{}, false
}

func (s *study) buildWords(v lab.Serving) string {
	b, known := s.buildOf(v.Target, v.State)
	if !known {
		return orUnknown(v.Recipe)
	}
	what := strings.TrimSpace(s.flavorWord(b) + " " + b.Version)
	if what == "" {
		return b.Recipe
	}
	return b.Recipe + ": " + what
}

// flavorWord is what a build is; nothing for a custom one, which its name tells.
func (s *study) flavorWord(b lab.Build) string {
	if flavor := s.recipe(b.Recipe).Flavor; flavor != lab.FlavorCustom {
		return flavor
	}
	return ""
}

// answers is the site, or the command of a server that is not nginx.
func (s *study) answers(v lab.Serving) templates.Text {
	text := plain("site " + orUnknown(s.Plan.Experiment.Server.Site))
	if v.Command != nil {
		text = join(plain("by "), mono(strings.Join(v.Command.Start, " ")))
	}
	if v.DelayS > 0 {
		text = join(text, plain(", each request waits "+duration.print(v.DelayS)))
	}
	if v.DelayS > 0 && v.AtOnce > 0 {
		text = join(text, plain(", at most "+count(int64(v.AtOnce))+" at once"))
	}
	return text
}

// tlsWords is what the probe's connection agreed on; before there was one, what is asked for.
func tlsWords(v lab.Serving, read lab.Server) string {
	words := []string{}
	switch {
	case read.TLS != nil:
		words = append(words, read.TLS.Version, read.TLS.Cipher, read.TLS.Key)
		if read.TLS.Protocol != "" {
			words = append(words, read.TLS.Protocol)
		}
	case v.TLS != nil:
		words = append(words, "asked for: "+v.TLS.Key)
	}
	if read.QUIC {
		words = append(words, "QUIC, too")
	}
	return strings.Join(words, ", ")
}

func (s *study) upstreamWords(v lab.Serving) string {
	if v.Upstream == nil {
		return ""
	}
	text := fmt.Sprintf("%s, port %d", v.Upstream.Target, v.Upstream.Port)
	for _, b := range s.Builds {
		if b.Recipe == v.Upstream.Recipe {
			return text + ", " + strings.TrimSpace(s.flavorWord(b)+" "+b.Version)
		}
	}
	return text
}

func configWords(read lab.Server) templates.Text {
	if read.EffectiveSHA == "" {
		return nil
	}
	return styled(fmt.Sprintf("%.*s", shortHash, read.EffectiveSHA), templates.Mono)
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}
