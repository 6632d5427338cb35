package lab

import "time"

// Flavors of builds. Those of nginx get their configuration from lab/server; the others are run by a ServerCommand.
const (
	FlavorNginx   = "nginx"
	FlavorTengine = "tengine"
	FlavorBrpc    = "brpc"   // the HTTP server among the examples of a brpc source
	FlavorCustom  = "custom" // whatever Make, a package or an installed file gives
)

// Recipe is how a server binary is had: compiled from a source, taken out of the distribution's packages, or found
// installed. Two recipes that are equal but for their name make the same build.
type Recipe struct {
	Name      string        `json:"name"`
	Flavor    string        `json:"flavor"` // FlavorNginx and so on
	Version   string        `json:"version,omitempty"`
	Modules   []string      `json:"modules,omitempty"`   // stub_status, ssl … as in --with-http_NAME_module, and echo
	Dynamic   []string      `json:"dynamic,omitempty"`   // of Modules: those built as shared objects
	Added     []Module      `json:"added,omitempty"`     // further modules with sources of their own
	Configure []string      `json:"configure,omitempty"` // further configure flags
	Sources   []BuildSource `json:"sources,omitempty"`   // tried in order
	Echo      []BuildSource `json:"echo,omitempty"`      // of the echo module; default the distribution's
	EchoWants string        `json:"echo_version,omitempty"`
	Patches   bool          `json:"patches,omitempty"`  // apply the Debian patches
	Compiler  string        `json:"compiler,omitempty"` // command: gcc-11, clang; default the host's cc
	CFlags    string        `json:"cflags,omitempty"`   // for the compiler, beside nginx's own
	LDFlags   string        `json:"ldflags,omitempty"`
	Timeout   Duration      `json:"timeout_s,omitzero"` // of each command that builds; 0 = 1 h
	Make      [][]string    `json:"make,omitempty"`     // FlavorCustom: argument lists, run in the source's directory; filled by lab/server for FlavorBrpc
	Keep      []string      `json:"keep,omitempty"`     // FlavorCustom: files and folders of the source's directory that are kept beside the binary
	Binary    string        `json:"binary,omitempty"`   // of the finished server: relative to the source's directory, or to the root of its packages; filled by lab/server but for FlavorCustom

	Package   []string `json:"package,omitempty"`   // binary packages of the distribution, unpacked beside each other, never installed; the first has the server
	Suite     string   `json:"suite,omitempty"`     // of Package; "" = the host's own
	Installed string   `json:"installed,omitempty"` // absolute path of a server that the host has; used where it is

	Command *ServerCommand `json:"command,omitempty"` // how the server is started; nil = as nginx, or by the server section

	Remedies []Remedy `json:"remedies,omitempty"` // what old sources need on new systems; filled by lab/server
	Packages []string `json:"packages,omitempty"` // needed to build, as Debian names them; completed by lab/server
	Flags    []string `json:"flags,omitempty"`    // full configure command line after ./configure; filled by lab/server
}

// IsNginx reports whether the server takes nginx's configuration.
func (r Recipe) IsNginx() bool { return r.Flavor == FlavorNginx || r.Flavor == FlavorTengine }

// Compiled reports whether the build is made from a source.
func (r Recipe) Compiled() bool { return len(r.Package) == 0 && r.Installed == "" }

// Module is a module of nginx with a source of its own, unpacked into the directory module-NAME beside the server's
// source.
type Module struct {
	Name    string        `json:"name"`
	Version string        `json:"version,omitempty"` // that the source must have, as its archive or package says
	Sources []BuildSource `json:"sources"`
	Dynamic bool          `json:"dynamic,omitempty"`
}

// Remedy is a known cure for sources older than a version: flags for the compiler, or an edit of one file. It is used
// when the source is that old (and, for an edit, has the text), and told in the build's notes.
type Remedy struct {
	Below   string `json:"below"` // nginx version, "1.15.0"; Tengine counts by the nginx that it was made from
	Why     string `json:"why"`
	CFlags  string `json:"cflags,omitempty"`
	File    string `json:"file,omitempty"` // relative to the source's directory
	Find    string `json:"find,omitempty"`
	Replace string `json:"replace,omitempty"`
}

// BuildSource is one place to get a source from; exactly one of URL, Path, Git, Debian and Text is set.
type BuildSource struct {
	URL     string            `json:"url,omitempty"`
	SHA256  string            `json:"sha256,omitempty"` // compulsory with URL
	Path    string            `json:"path,omitempty"`   // archive (tar.gz, tar.xz, tar.bz2, tar, zip) or directory on the host
	Git     string            `json:"git,omitempty"`
	Commit  string            `json:"commit,omitempty"`
	Debian  string            `json:"debian,omitempty"`  // source package
	Suite   string            `json:"suite,omitempty"`   // "" = the host's own
	Version string            `json:"version,omitempty"` // upstream version of the source package; "" = the newest
	Text    map[string]string `json:"text,omitempty"`    // relative path → content: a program small enough to stand in the experiment
}

// Build is a finished server on one host.
type Build struct {
	ID         string            `json:"id"`     // hash of recipe, source, compiler, distribution and architecture
	Recipe     string            `json:"recipe"` // name
	Flavor     string            `json:"flavor,omitempty"`
	Dir        string            `json:"dir,omitempty"` // absolute path on the host, for which {build} stands in a Serving; "" of an installed server
	Binary     string            `json:"binary"`        // absolute path on the host
	Version    string            `json:"version"`
	Configured string            `json:"configured"` // output of -V, or of the recipe's version command
	Compiler   string            `json:"compiler"`
	Sources    map[string]string `json:"sources"` // what was used → SHA-256
	Notes      []string          `json:"notes,omitempty"`
	TookS      float64           `json:"took_s"`
	Cached     bool              `json:"cached"`
	Log        string            `json:"log"` // path of the build log on the host

	SizeBytes int64     `json:"binary_bytes,omitempty"` // of Binary
	Modules   []string  `json:"modules,omitempty"`      // compiled in, as the binary says; sorted
	Dynamic   []string  `json:"dynamic,omitempty"`      // shared objects to load, relative to Dir, absolute for an installed server; in the order of loading
	Libraries []Library `json:"libraries,omitempty"`    // that the binary is linked with, by name
	Env       []string  `json:"env,omitempty"`          // KEY=value that the binary needs to start; {build} for Dir
	MadeBy    string    `json:"made_by,omitempty"`      // user that compiled

	Distribution string   `json:"distribution,omitempty"` // that it was made on, "debian 12"
	Architecture string   `json:"architecture,omitempty"` // as Go names it
	Identity     string   `json:"identity,omitempty"`     // hash of recipe, distribution and architecture, whatever the compiler
	From         HostName `json:"from,omitempty"`         // the host that it was copied from; "" = made where it is
}

// Library is a shared library that a binary uses.
type Library struct {
	Name    string `json:"name"`              // libssl.so.3
	Path    string `json:"path"`              // real path, links resolved
	Version string `json:"version,omitempty"` // of the package that owns it, as the package manager says; "" unknown
}

// KeptBuild is a build in a host's cache.
type KeptBuild struct {
	Build
	DiskBytes int64     `json:"size_bytes"` // of all its files
	Made      time.Time `json:"made"`
	Used      time.Time `json:"used"` // last time that a campaign asked for it
}

// Trial asks a host what its finished build says of a configuration; nothing is made and nothing stays.
type Trial struct {
	Recipe  Recipe  `json:"recipe"`
	Serving Serving `json:"serving"`
}

// Tried is the answer to a Trial.
type Tried struct {
	Build   *Build `json:"build,omitempty"`   // nil: not made yet, nothing could be tried
	Refused string `json:"refused,omitempty"` // in the server's own words; "" = it takes the configuration
}
