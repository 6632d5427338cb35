package experiments

import "ngxlab/lab"

var recipe = object(newRecipe,
	has("flavor", "nginx", oneOf("nginx"), func(r *lab.Recipe) *string { return &r.Flavor }),
	has("version", "default: the one that the source has", text, func(r *lab.Recipe) *string { return &r.Version }),
	has("modules", "stub_status and echo; default both", list(oneOf("stub_status", "echo")), func(r *lab.Recipe) *[]string { return &r.Modules }),
	has("configure", "further flags of ./configure", list(text), func(r *lab.Recipe) *[]string { return &r.Configure }),
	has("source", "where the server's source comes from, tried in order; default {debian: nginx}", list(source),
		func(r *lab.Recipe) *[]lab.BuildSource { return &r.Sources }),
	has("echo_source", "where the echo module's source comes from; default the distribution's", list(source),
		func(r *lab.Recipe) *[]lab.BuildSource { return &r.Echo }),
	has("patches", "true: apply the Debian patches", boolean, func(r *lab.Recipe) *bool { return &r.Patches }),
)

var source = object(func() lab.BuildSource { return lab.BuildSource{} },
	has("url", "an archive, with sha256", matching("an http or https URL", `^https?://[^\s/]+/[^\s]+$`), func(s *lab.BuildSource) *string { return &s.URL }),
	has("sha256", "of the archive, 64 hex digits", matching("64 hex digits", sha256Pattern), func(s *lab.BuildSource) *string { return &s.SHA256 }),
	has("path", "an archive or directory on the host, absolute", matching("an absolute path", `^/`), func(s *lab.BuildSource) *string { return &s.Path }),
	has("git", "a repository, with commit", text, func(s *lab.BuildSource) *string { return &s.Git }),
	has("commit", "of the repository, 40 hex digits", matching("40 hex digits", commitPattern), func(s *lab.BuildSource) *string { return &s.Commit }),
	has("debian", "a Debian source package", nameText, func(s *lab.BuildSource) *string { return &s.Debian }),
	has("suite", "of the source package, default the host's own", nameText, func(s *lab.BuildSource) *string { return &s.Suite }),
)
