package lab

import (
	"path"
	"slices"
	"strings"
)

// ConfiguredModules are the modules that the output of nginx -V names, sorted, by the names that they have in nginx where
// the flag tells it ("--with-http_ssl_module" → "ngx_http_ssl_module"), else by the directory of their source. Those that
// nginx has by default are not among them.
func ConfiguredModules(configured string) []string {
	var names []string
	for _, flag := range strings.Fields(configured) {
		flag = strings.Trim(flag, `'"`)
		for _, added := range []string{"--add-module=", "--add-dynamic-module="} {
			if dir, ok := strings.CutPrefix(flag, added); ok {
				names = append(names, path.Base(dir))
			}
		}
		if name, ok := strings.CutPrefix(flag, "--with-"); ok && strings.HasSuffix(strings.TrimSuffix(name, "=dynamic"), "_module") {
			names = append(names, "ngx_"+strings.TrimSuffix(name, "=dynamic"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
