package server

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"ngxlab/lab"
)

// sites are the paths of the sites; a site file serves any path.
var sites = map[string]string{
	"empty-gif": "/empty.gif", "hello": "/hello", "echo": "/echo", "sleep": "/sleep", "file": "/file",
}

// DefaultURL is the path that a site serves: "/hello" of hello and so on, "/file" of file, "" of an unknown site.
func DefaultURL(site string) string { return sites[site] }

// check refuses what the server could not do.
func check(in Input, hold bool) error {
	if DefaultURL(in.Spec.Site) == "" {
		return fmt.Errorf("there is no site %q; known are %s", in.Spec.Site, strings.Join(slices.Sorted(maps.Keys(sites)), ", "))
	}
	for _, url := range in.URLs {
		if err := served(in.Spec.Site, url, hold); err != nil {
			return err
		}
	}
	if !has(in.Recipe, "stub_status") {
		return fmt.Errorf("build %s lacks the module stub_status, which counts the requests", in.Recipe.Name)
	}
	if (hold || in.Spec.Site == "echo" || in.Spec.Site == "sleep") && !has(in.Recipe, "echo") {
		return fmt.Errorf("build %s lacks the module echo, which the site needs", in.Recipe.Name)
	}
	for _, cpu := range in.CPUs {
		if len(in.Facts.CPUs) > 0 && !slices.Contains(in.Facts.CPUs, cpu) {
			return fmt.Errorf("CPU %d is not one of those that the host may use: %v", cpu, in.Facts.CPUs)
		}
	}
	return nil
}

// served says whether the site answers the path.
func served(site, url string, hold bool) error {
	name, _, _ := strings.Cut(url, "?")
	switch {
	case !strings.HasPrefix(name, "/"):
		return fmt.Errorf("url %q does not begin with /", url)
	case hold && name == HoldURL, site == "file", name == DefaultURL(site):
		return nil
	}
	return fmt.Errorf("site %s serves %s, not %s", site, DefaultURL(site), url)
}

// has reports whether the recipe has a module, by its list or by a configure flag.
func has(r lab.Recipe, module string) bool {
	return slices.ContainsFunc(append(slices.Clone(r.Modules), r.Configure...), func(s string) bool { return strings.Contains(s, module) })
}

// bodies are the files of site file: one of body_bytes for each path that is asked for.
func bodies(in Input) (map[string]lab.Body, error) {
	if in.Spec.Site != "file" {
		return nil, nil
	}
	body, err := lab.NewBody(in.Spec.BodyBytes)
	if err != nil {
		return nil, err
	}
	files := map[string]lab.Body{}
	for _, url := range append([]string{DefaultURL("file")}, in.URLs...) {
		name, _, _ := strings.Cut(url, "?")
		if strings.HasSuffix(name, "/") {
			name += "index.html"
		}
		if name != HoldURL {
			files[path.Join("html", path.Clean(name))] = body
		}
	}
	return files, nil
}
