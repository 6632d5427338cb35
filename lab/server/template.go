package server

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server/nginxconf"
	"ngxlab/templates"
)

// What stands for {prefix} and {build} while a template is read: nginx's grammar takes a brace for the beginning of a
// block. As paths they make relative and absolute names of included files the same.
const (
	prefixMark = "/@ngxlab-prefix@"
	buildMark  = "/@ngxlab-build@"
)

// placeholderRE is a placeholder of a template; behind a dollar it is a variable of nginx.
var placeholderRE = regexp.MustCompile(`\$?\{(port|status_port|prefix|build|cert|key)\}`)

// templated is a configuration of the user's with what the lab needs edited in: it stays in the foreground, its pid and
// error log are where the lab looks for them, it loads the modules of the build, and it has stub_status at the status
// port. Contexts of directives are those of the first server that listens on the site's port; location is the one in it
// that serves the first path of the load, exactly or by its longest prefix.
func templated(in Input, hold bool) (tree, error) {
	if hold {
		return tree{}, errors.New("the site template has no location for held connections")
	}
	t, err := templateTree(in)
	if err != nil {
		return tree{}, fmt.Errorf("template: %w", unmarked(err))
	}
	return t, nil
}

func templateTree(in Input) (tree, error) {
	files, err := filled(in)
	if err != nil {
		return tree{}, err
	}
	list, err := files.Parse()
	if err != nil {
		return tree{}, fmt.Errorf("%w (it has the files beside %s and below, no others)", err, lab.TemplateRoot)
	}
	c := templateCheck{in: in, files: files, list: list}
	if err := c.all(); err != nil {
		return tree{}, err
	}
	t := tree{files: files, paths: map[string]nginxconf.Path{"main": nil, "events": {"events"}, "http": {"http"}}}
	c.site(&t)
	t.files, err = c.ours(t.files)
	return t, err
}

// filled are the files of the template, with what is known in the place of the placeholders.
func filled(in Input) (nginxconf.Files, error) {
	values := map[string]string{
		"port": strconv.Itoa(in.Spec.Port), "status_port": strconv.Itoa(statusPort(in.Spec)), "prefix": prefixMark, "build": buildMark,
		"cert": prefixMark + "/tls/cert.pem", "key": prefixMark + "/tls/key.pem",
	}
	files := nginxconf.Files{Root: path.Join(prefixMark, lab.TemplateRoot), Text: map[string][]byte{}}
	for name, text := range in.Spec.Template {
		var clash string
		text = placeholderRE.ReplaceAllStringFunc(text, func(found string) string {
			name := strings.Trim(found, "${}")
			if strings.HasPrefix(found, "$") {
				if name == "prefix" || name == "build" {
					clash = found
				}
				return found
			}
			return values[name]
		})
		if clash != "" {
			return files, fmt.Errorf("%s: %s would be taken for the lab's own; give the variable another name", name, clash)
		}
		files.Text[path.Join(prefixMark, name)] = []byte(text)
	}
	if _, there := files.Text[files.Root]; !there {
		return files, fmt.Errorf("there is no %s", lab.TemplateRoot)
	}
	return files, nil
}

// site finds where the contexts of the site stand.
func (c templateCheck) site(t *tree) {
	number, server := c.server(c.in.Spec.Port)
	at := nginxconf.Path{"http", numberedBlock("server", number)}
	t.paths["server"] = at
	url, _, _ := strings.Cut(c.in.URLs[0], "?")
	location, found := locationOf(server, url)
	if !found {
		t.homeless = fmt.Sprintf("no location of the template serves %s exactly or by its beginning; write the directive with another context, as server.NAME", url)
		return
	}
	t.paths["location"] = append(at[:len(at):len(at)], numberedBlock("location", location))
}

func numberedBlock(name string, number int) string { return fmt.Sprintf("%s[%d]", name, number) }

// ours puts in what the lab needs.
func (c templateCheck) ours(files nginxconf.Files) (nginxconf.Files, error) {
	for _, d := range []struct{ name, value string }{
		{"daemon", "off"}, {"master_process", "on"}, {"pid", "logs/nginx.pid"}, {"error_log", c.errorLog()},
	} {
		var err error
		if files, err = files.Set(nil, d.name, d.value); err != nil {
			return files, err
		}
	}
	if n := Workers(c.in.CPUs, c.in.Facts); n > 0 {
		if value, _, err := files.Value(nil, "worker_processes"); err == nil && lab.Unquoted(value) == "auto" {
			if files, err = files.Set(nil, "worker_processes", strconv.Itoa(n)); err != nil {
				return files, err
			}
		}
	}
	if status := statusAddress(c.in); status != "" && !c.counted {
		var err error
		text := strings.TrimSpace(templates.Nginx{Status: status}.StatusServer())
		if files, err = files.Append(nginxconf.Path{"http"}, text); err != nil {
			return files, err
		}
	}
	files.Text[files.Root] = []byte(c.loading() + string(files.Text[files.Root]))
	return files, nil
}

// errorLog is the lab's own, at the level that the template has.
func (c templateCheck) errorLog() string {
	level := "warn"
	for _, d := range c.list {
		if d.Name == "error_log" && len(d.Args) > 1 {
			level = d.Args[1]
		}
	}
	return "logs/error.log " + level
}

// loading are the lines that load the modules of the build, before all else, but for those that the template loads.
func (c templateCheck) loading() string {
	own := map[string]bool{}
	for _, d := range c.list {
		if d.Name == "load_module" && len(d.Args) == 1 {
			own[path.Base(d.Args[0])] = true
		}
	}
	var b strings.Builder
	for _, file := range loaded(c.in.Recipe) {
		if !own[path.Base(file)] {
			b.WriteString("load_module " + strings.Replace(file, "{build}", buildMark, 1) + ";\n")
		}
	}
	return b.String()
}

// marks are what stands for placeholders.
var marks = strings.NewReplacer(prefixMark, "{prefix}", buildMark, "{build}")

// unmarked is an error with the names of files as the template has them.
func unmarked(err error) error {
	if err == nil || !strings.Contains(err.Error(), prefixMark) {
		return err
	}
	return errors.New(marks.Replace(strings.ReplaceAll(err.Error(), prefixMark+"/", "")))
}
