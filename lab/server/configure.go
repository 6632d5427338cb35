package server

import (
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server/nginxconf"
	"ngxlab/templates"
)

// tree is a configuration, and where the site stands in it.
type tree struct {
	files    nginxconf.Files
	paths    map[string]nginxconf.Path // of the contexts
	homeless string                    // why there is no location; "" when there is one
}

// configured makes the configuration and edits the directives in.
func configured(in Input, hold bool, over []lab.Setting) (tree, []placed, error) {
	begin := rendered
	if in.Spec.Site == siteTemplate {
		begin = templated
	}
	t, err := begin(in, hold)
	if err == nil {
		t.files, err = temporary(t.files, in.Recipe)
	}
	if err != nil {
		return tree{}, nil, err
	}
	list := directives(in, over)
	for _, d := range list {
		if hold && d.setting.Absent && d.place.name == "map" {
			return tree{}, nil, errors.New("directive http.map cannot be removed from the server for held connections, whose probe needs one")
		}
		if t, err = t.edited(d); err != nil {
			return tree{}, nil, err
		}
	}
	return t, list, nil
}

// temporary gives a server out of packages places of its own for what it buffers on the disk: the distribution's are
// directories that only installing the package makes (debian/rules of nginx: --http-client-body-temp-path=…).
func temporary(f nginxconf.Files, r lab.Recipe) (nginxconf.Files, error) {
	if len(r.Package) == 0 {
		return f, nil
	}
	http := paths["http"]
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		name := what + "_temp_path"
		_, given, err := f.Value(http, name)
		if err == nil && !given {
			f, err = f.Set(http, name, name)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// rendered is the configuration of a site of the lab's own.
func rendered(in Input, hold bool) (tree, error) {
	n := templates.Nginx{
		Modules: loaded(in.Recipe), Listen: listen(in.Target, in.Address, in.Spec.Port), Port: in.Spec.Port, Status: statusAddress(in),
		Site: in.Spec.Site, Sleep: strconv.FormatFloat(in.Spec.SleepS, 'f', -1, 64), Hold: hold,
		TLS: in.Spec.TLS != nil, HTTP2: http2(in), HTTP3: in.Spec.TLS != nil && in.Spec.TLS.HTTP3,
	}
	if in.Spec.Site == siteProxy && in.Upstream != nil {
		n.Upstream = net.JoinHostPort(in.Via, strconv.Itoa(in.Upstream.Port))
		if in.Spec.Upstream != nil {
			n.KeepAlive = in.Spec.Upstream.KeepAlive
		}
	}
	text, err := templates.NginxConf(n)
	if err != nil {
		return tree{}, err
	}
	const root = lab.TemplateRoot
	return tree{files: nginxconf.Files{Root: root, Text: map[string][]byte{root: []byte(text)}}, paths: paths}, nil
}

// statusAddress is where stub_status listens, "" when it does not.
func statusAddress(in Input) string {
	port := counting(in)
	if port == 0 {
		return ""
	}
	return net.JoinHostPort(lab.Loopback, strconv.Itoa(port))
}

// loaded are the modules that the configuration loads.
func loaded(r lab.Recipe) []string {
	var all []string
	for _, name := range DynamicModules(r) {
		if !path.IsAbs(name) {
			name = "{build}/" + name
		}
		all = append(all, name)
	}
	return all
}

// into puts the files into a serving.
func (t tree) into(s *lab.Serving) {
	for name, content := range t.files.Text {
		text := marks.Replace(string(content))
		if name == t.files.Root {
			s.Config = text
			continue
		}
		if s.Files == nil {
			s.Files = map[string]string{}
		}
		s.Files[strings.TrimPrefix(name, prefixMark+"/")] = text
	}
}

// delayS is how long a request of the site waits: echo_sleep in its location, when that is a plain number of seconds.
func (t tree) delayS() float64 {
	if t.homeless != "" {
		return 0
	}
	text, found, err := t.files.Value(t.paths["location"], "echo_sleep")
	if err != nil || !found {
		return 0
	}
	delay, err := strconv.ParseFloat(lab.Unquoted(text), 64)
	if err != nil || delay < 0 {
		return 0
	}
	return delay
}

// user is whom the workers run as, "" when no directive says.
func user(list []placed) string {
	for _, p := range list {
		if words := strings.Fields(p.setting.Value); p.place.name == "user" && !p.setting.Absent && len(words) > 0 {
			return lab.Unquoted(words[0])
		}
	}
	return ""
}

// Present is the value that the configuration of nginx has of a directive before any step, by the template or the server
// section: as an experiment would write it, but for white space and quotes (Same). It is false when there is none, which
// for most directives means nginx's own default.
func Present(in Input, directive string) (value string, present bool) {
	in.State.Settings, in.URLs = nil, asked(in)
	t, _, err := configured(in, false, nil)
	if err != nil {
		return "", false
	}
	p := locate(directive)
	switch {
	case p.problem != nil, p.context == "location" && t.homeless != "":
		return "", false
	case p.parameter != "":
		value, present, err = t.files.Parameter(t.paths[p.context], p.name, p.parameter)
	default:
		value, present, err = t.files.Value(t.paths[p.context], p.name)
	}
	return marks.Replace(value), present && err == nil
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

// edited puts the directive into the configuration, or takes it out.
func (t tree) edited(p placed) (tree, error) {
	if p.place.problem != nil {
		return t, p.place.problem
	}
	at := t.paths[p.place.context]
	err := p.written()
	switch {
	case err != nil:
	case p.place.context == "location" && t.homeless != "":
		err = errors.New(t.homeless)
	case p.setting.Absent && p.place.parameter != "":
		t.files, err = t.files.SetParameter(at, p.place.name, p.place.parameter, "off")
	case p.setting.Absent:
		t.files, err = t.files.Remove(at, p.place.name)
	case p.place.parameter != "":
		t.files, err = t.files.SetParameter(at, p.place.name, p.place.parameter, p.setting.Value)
	default:
		t.files, err = t.files.Set(at, p.place.name, p.setting.Value)
	}
	if err != nil {
		return t, fmt.Errorf("directive %s: %w", p.setting.Knob.Name, unmarked(err))
	}
	return t, nil
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
	if in.Spec.User != "" {
		all = append(all, directive("user", withGroup(in.Spec.User, in.Facts)))
	}
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

// withGroup is a user as nginx takes it, which supposes a group of the same name: Debian and what comes from it have none for
// nobody.
func withGroup(user string, f lab.Facts) string {
	family, _, _ := strings.Cut(f.Distribution, " ")
	if user == "nobody" && (family == "" || family == "debian" || family == "ubuntu") {
		return user + " nogroup"
	}
	return user
}

// pinned resolves worker_processes auto where nginx would count wrong.
func pinned(s lab.Setting, in Input) lab.Setting {
	if n := Workers(in.CPUs, in.Facts); n > 0 && lab.Unquoted(s.Value) == "auto" && locate(s.Knob.Name).name == "worker_processes" {
		s.Value = strconv.Itoa(n)
	}
	return s
}
