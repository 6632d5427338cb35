package build

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ngxlab/lab"
)

// installed is a server that the host has already; it stays where it is.
func (c Cache) installed(ctx context.Context, j job) (lab.Build, error) {
	path := j.recipe.Installed
	if !filepath.IsAbs(path) {
		return lab.Build{}, fmt.Errorf("the installed server %q is no absolute path", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return lab.Build{}, fmt.Errorf("the installed server: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return lab.Build{}, fmt.Errorf("the installed server %s is no program (mode %v)", path, info.Mode())
	}
	sum, err := hashFile(path)
	if err != nil {
		return lab.Build{}, err
	}
	where, err := place(j.recipe)
	if err != nil {
		return lab.Build{}, err
	}
	b := lab.Build{
		Recipe: j.recipe.Name, Flavor: j.recipe.Flavor, Binary: path, Sources: map[string]string{path: sum}, Cached: true, SizeBytes: info.Size(),
		Distribution: where.Distribution, Architecture: where.Architecture, Identity: hash(identity(j.recipe), where),
	}
	if !j.recipe.IsNginx() {
		b.Binary = filepath.Base(path)
		err = c.ownVersion(ctx, j, filepath.Dir(path), &b)
		b.Binary = path
	} else {
		err = c.installedNginx(ctx, j, &b)
	}
	b.ID = hash(sum, b.Configured)
	return b, err
}

// modulesPath is where -V says that an nginx looks for modules.
var modulesPath = regexp.MustCompile(`--modules-path=(\S+)`)

// installedNginx asks an installed nginx what it is, and finds the modules that are asked for.
func (c Cache) installedNginx(ctx context.Context, j job, b *lab.Build) (err error) {
	if b.Configured, b.Version, err = c.inspect(ctx, b.Binary, nil); err != nil {
		return err
	}
	b.Modules = modulesOf(b.Binary, b.Configured)
	if want := j.recipe.Version; want != "" && want != b.Version {
		return fmt.Errorf("%w: asked for %s, %s is %s", errVersion, want, b.Binary, b.Version)
	}
	for _, name := range j.recipe.Modules {
		object, err := installedModule(*b, name)
		if err != nil {
			return err
		}
		if object != "" {
			b.Dynamic = append(b.Dynamic, object)
		}
	}
	b.Dynamic = loadOrder(b.Dynamic)
	return nil
}

// installedModule is the shared object of a module, "" of one that is compiled in.
func installedModule(b lab.Build, name string) (string, error) {
	name = strings.ReplaceAll(name, "-", "_")
	if compiledIn(b, name) {
		return "", nil
	}
	for _, dir := range modulesPath.FindAllStringSubmatch(b.Configured, -1) {
		for _, file := range []string{"ngx_http_" + name + "_module.so", "ngx_http_" + name + "_filter_module.so", "ngx_" + name + "_module.so", name + "_http_module.so"} {
			path := filepath.Join(dir[1], file)
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("the installed server %s has no module %s, compiled in or to be loaded; it has %s", b.Binary, name, strings.Join(b.Modules, ", "))
}

// compiledIn reports whether a module, or what a flag of that name gives, is part of the binary.
func compiledIn(b lab.Build, name string) bool {
	shared := false
	for _, flag := range strings.Fields(strings.ReplaceAll(b.Configured, "-", "_")) {
		flag = strings.Trim(flag, `'"`)
		switch {
		case flag == "__with_http_"+name+"_module", flag == "__with_"+name+"_module", flag == "__with_"+name:
			return true
		case strings.HasPrefix(flag, "__add_module=") && strings.Contains(path.Base(flag), name):
			return true
		case strings.HasSuffix(flag, "_"+name+"_module=dynamic"), flag == "__with_"+name+"=dynamic":
			shared = true
		}
	}
	return !shared && slices.ContainsFunc([]string{"ngx_http_" + name + "_module", "ngx_http_" + name + "_filter_module", "ngx_" + name + "_module"}, func(m string) bool {
		return slices.Contains(b.Modules, m)
	})
}
