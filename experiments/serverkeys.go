package experiments

import (
	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

var serverSpec = object(func() lab.ServerSpec { return lab.ServerSpec{} },
	has("build", "name of a build; default the only one", nameText, func(s *lab.ServerSpec) *string { return &s.Build }),
	has("port", "of the site, default 8081", port, func(s *lab.ServerSpec) *int { return &s.Port }),
	has("status_port", "of stub_status, default port + 1", port, func(s *lab.ServerSpec) *int { return &s.StatusPort }),
	has("site", "empty-gif (default), hello, echo, sleep or file", oneOf("empty-gif", "hello", "echo", "sleep", "file"), func(s *lab.ServerSpec) *string { return &s.Site }),
	has("body", "size of the site file, default 1KiB", size, func(s *lab.ServerSpec) *int64 { return &s.BodyBytes }),
	key[lab.ServerSpec]{name: "sleep", doc: "delay of the site sleep, default 100ms", schema: duration.schema,
		read: func(d *decoding, path string, n ast.Node, s *lab.ServerSpec) {
			if t, ok := duration.read(d, path, n); ok {
				s.SleepS = t.Seconds()
			}
		}},
	has("cpus", "CPUs of the server: a list such as 0-3, or auto: half of them when load shares the host; default not pinned", cpus,
		func(s *lab.ServerSpec) *string { return &s.CPUs }),
	has("nofile", "open-file limit of the server, default the host's", nofile, func(s *lab.ServerSpec) *int { return &s.Nofile }),
	has("nproc", "process limit of the server's user, default the host's", nproc, func(s *lab.ServerSpec) *int { return &s.Nproc }),
	has("restart", "always (default): a fresh server for each state and round; needed: only when something differs that a server takes over at its start",
		oneOf(lab.RestartAlways, lab.RestartNeeded), func(s *lab.ServerSpec) *lab.Restart { return &s.Restart }),
	has("nginx", "directives, with their context: events.worker_connections", directives, func(s *lab.ServerSpec) *map[string]string { return &s.Nginx }),
)
