package server

import (
	"fmt"

	"ngxlab/lab"
	"ngxlab/templates"
)

// secured refuses TLS and the versions of HTTP that need it where the build does not have them.
func secured(in Input) error {
	if in.Spec.TLS == nil {
		return nil
	}
	r := in.Recipe
	for _, needed := range []struct {
		module, what string
		is           bool
	}{{"ssl", "TLS", true}, {"v2", "HTTP/2", in.Spec.TLS.HTTP2}, {"v3", "HTTP/3", in.Spec.TLS.HTTP3}} {
		if needed.is && !has(r, needed.module) {
			return fmt.Errorf("build %s lacks the module %s, which %s needs: add %s to its modules", r.Name, needed.module, needed.what, needed.module)
		}
	}
	if in.Spec.TLS.HTTP3 && r.Flavor == lab.FlavorNginx && older(r.Version, 1, 25, 0) {
		return fmt.Errorf("build %s is nginx %s, and HTTP/3 came with 1.25.0", r.Name, r.Version)
	}
	return nil
}

// http2 is how the server speaks HTTP/2. The parameter of listen has been deprecated since 1.25.1 and is still taken, with a
// warning: it is written where the version is not known, and for Tengine, which counts by versions of its own.
func http2(in Input) string {
	switch r := in.Recipe; {
	case in.Spec.TLS == nil || !in.Spec.TLS.HTTP2:
		return ""
	case r.Flavor != lab.FlavorNginx || !r.Compiled() || r.Version == "" || older(r.Version, 1, 25, 1):
		return templates.HTTP2Listen
	}
	return templates.HTTP2Directive
}
