package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server/nginxconf"
	"ngxlab/templates"
)

// configured renders the configuration and edits the directives in.
func configured(in Input, hold bool, over []lab.Setting) ([]byte, []placed, error) {
	text, err := templates.NginxConf(templates.Nginx{
		Listen: listen(in.Target, in.Address, in.Spec.Port), Status: net.JoinHostPort(lab.Loopback, strconv.Itoa(statusPort(in.Spec))),
		Site: in.Spec.Site, Sleep: strconv.FormatFloat(in.Spec.SleepS, 'f', -1, 64), Hold: hold,
	})
	if err != nil {
		return nil, nil, err
	}
	conf, list := []byte(text), directives(in, over)
	for _, d := range list {
		if hold && d.setting.Absent && d.place.name == "map" {
			return nil, nil, errors.New("directive http.map cannot be removed from the server for held connections, whose probe needs one")
		}
		if conf, err = d.edit(conf); err != nil {
			return nil, nil, err
		}
	}
	return conf, list, nil
}

// Present is the value that the configuration has of a directive before any step, by the template or the server section:
// as an experiment would write it, but for white space and quotes (Same). It is false when there is none, which for
// most directives means nginx's own default.
func Present(in Input, directive string) (value string, present bool) {
	in.State.Settings = nil
	conf, _, err := configured(in, false, nil)
	if err != nil {
		return "", false
	}
	p := locate(directive)
	switch {
	case p.problem != nil:
		return "", false
	case p.parameter != "":
		value, present, err = nginxconf.Parameter(conf, p.path, p.name, p.parameter)
	default:
		value, present, err = nginxconf.Value(conf, p.path, p.name)
	}
	return value, present && err == nil
}

// Same reports whether two values of a directive are the same to nginx.
func Same(directive, a, b string) bool {
	p := locate(directive)
	if p.parameter != "" {
		return lab.Switched(a) == lab.Switched(b)
	}
	return nginxconf.Same(p.name, a, b)
}

// placed is a setting and where it goes.
type placed struct {
	setting lab.Setting
	place   place
}

// edit puts the directive into the configuration, or takes it out.
func (p placed) edit(conf []byte) ([]byte, error) {
	if p.place.problem != nil {
		return nil, p.place.problem
	}
	err := p.written()
	switch {
	case err != nil:
	case p.setting.Absent && p.place.parameter != "":
		conf, err = nginxconf.SetParameter(conf, p.place.path, p.place.name, p.place.parameter, "off")
	case p.setting.Absent:
		conf, err = nginxconf.Remove(conf, p.place.path, p.place.name)
	case p.place.parameter != "":
		conf, err = nginxconf.SetParameter(conf, p.place.path, p.place.name, p.place.parameter, p.setting.Value)
	default:
		conf, err = nginxconf.Set(conf, p.place.path, p.place.name, p.setting.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("directive %s: %w", p.setting.Knob.Name, err)
	}
	return conf, nil
}

// written refuses a value in another form than the directive has.
func (p placed) written() error {
	if p.setting.Absent && p.place.name == "location" {
		return errors.New("the site's own location cannot be removed")
	}
	if p.setting.Absent || p.place.parameter != "" {
		return nil
	}
	some, blocks, err := nginxconf.Blocks(p.place.name, p.setting.Value)
	switch {
	case err != nil:
		return err
	case p.place.form == block && some:
		return fmt.Errorf("%q is no block: its arguments and then { … } are needed", p.setting.Value)
	case p.place.form == simple && blocks:
		return fmt.Errorf("%q has a block, which %s does not take", p.setting.Value, p.place.name)
	}
	return nil
}

// expected is what to find in force.
func (p placed) expected() lab.Setting {
	s := p.setting
	if full := p.place.context + "." + p.place.name; p.place.parameter == "" && full != s.Knob.Name {
		s.At = full
	}
	return s
}

// directives returns what to edit in, in the order of its first mention: the server section, the state's steps in
// their order, and what is laid over. A later mention of one place replaces the earlier, by whatever name it goes.
func directives(in Input, over []lab.Setting) []placed {
	var all []lab.Setting
	for name, value := range in.Spec.Nginx {
		all = append(all, directive(name, value))
	}
	for _, s := range in.State.Settings[in.Target.Name] {
		if s.Knob.Kind == lab.KnobNginx {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b lab.Setting) int {
		if order := slices.Index(in.State.Steps, a.Step) - slices.Index(in.State.Steps, b.Step); order != 0 {
			return order
		}
		return strings.Compare(a.Knob.Name, b.Knob.Name)
	})
	var list []placed
	for _, s := range append(all, over...) {
		p := placed{setting: pinned(s, in), place: locate(s.Knob.Name)}
		same := func(q placed) bool { return q.place.key() == p.place.key() }
		if at := slices.IndexFunc(list, same); at >= 0 {
			list[at] = p
			continue
		}
		list = append(list, p)
	}
	return list
}

// pinned resolves worker_processes auto where nginx would count wrong.
func pinned(s lab.Setting, in Input) lab.Setting {
	if n := Workers(in.CPUs, in.Facts); n > 0 && lab.Unquoted(s.Value) == "auto" && locate(s.Knob.Name).name == "worker_processes" {
		s.Value = strconv.Itoa(n)
	}
	return s
}
