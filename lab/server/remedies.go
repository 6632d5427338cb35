package server

import "ngxlab/lab"

// remedy is a remedy and the builds that it is for; nil is all.
type remedy struct {
	lab.Remedy
	of func(lab.Recipe) bool
}

// remedies of old sources on new systems. -Wno-error, which GCC and clang both know, takes the -Werror back that nginx
// compiles with; the flags of --with-cc-opt stand behind it. sys_errlist, which glibc 2.32 took out, is not used by any
// nginx since 1.6; 1.19.7 and older only log some errors without their names there.
var remedies = []remedy{
	// nginx ticket 1259; in the stable branch by 1.12.2, in the mainline by 1.13.6 of the same week.
	{Remedy: lab.Remedy{Below: "1.13.6", CFlags: "-Wno-error",
		Why: "switches of nginx before 1.13.6 fall through without saying so, which is an error since GCC 7 (-Wimplicit-fallthrough)"}},
	// nginx ticket 1546 and CHANGES of 1.15.0: "nginx could not be built by gcc 8.1".
	{Remedy: lab.Remedy{Below: "1.15.0", CFlags: "-Wno-error",
		Why: "nginx before 1.15.0 casts functions to other types, which is an error since GCC 8 (-Wcast-function-type)"}},
	// nginx ticket 1469; the lines worked around a fault of glibc before 2.3.2 and are gone since 1.15.0 (1ef5c9c).
	{Remedy: lab.Remedy{Below: "1.15.0", File: "src/os/unix/ngx_user.c", Find: "    cd.current_salt[0] = ~salt[0];\n", Replace: "",
		Why: "struct crypt_data has no member current_salt since glibc 2.28 (libxcrypt); nginx before 1.15.0 sets it against a fault of glibc 2.3.1"}},
	// auto/lib/md5 and auto/lib/sha1, gone in 1.11.2 ("now nginx always uses internal MD5 and SHA1 implementations").
	{Remedy: lab.Remedy{Below: "1.11.2", CFlags: "-Wno-deprecated-declarations",
		Why: "nginx before 1.11.2 takes MD5 and SHA1 from OpenSSL where its headers are, and OpenSSL 3 marks them as deprecated"}},
	// CHANGES of 1.21.2: "OpenSSL 3.0 compatibility"; openssl issue 12703.
	{Remedy: lab.Remedy{Below: "1.21.2", CFlags: "-Wno-deprecated-declarations",
		Why: "nginx before 1.21.2 calls what OpenSSL 3 marks as deprecated (ENGINE_by_id and others), which is an error with -Werror"}, of: encrypts},
}

// remediesOf are the remedies that a source of this recipe may need: all that its version does not rule out.
func remediesOf(r lab.Recipe) []lab.Remedy {
	var all []lab.Remedy
	version := NginxVersion(r)
	for _, m := range remedies {
		if (version == "" || below(version, m.Below)) && (m.of == nil || m.of(r)) {
			all = append(all, m.Remedy)
		}
	}
	return all
}
