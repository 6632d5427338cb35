package standin

import (
	"fmt"
	"strings"
)

// nginxH is where nginx and Tengine keep their versions.
const nginxH = "src/core/nginx.h"

// versionLine is that of nginx's own source, whichever it is, up to the number.
const versionLine = `#define NGINX_VERSION      "`

// version puts a number before the real one, which goes into a name that nobody reads. The number that modules compile
// by, nginx_version, stays what the source really is.
func version(v string) edit {
	return edit{nginxH, versionLine, versionLine + v + "\"\n#define STANDIN_MADE_OF    \""}
}

// Tengine's nginx.h, as far as others can see it: names and values of its macros.
const tengineMacros = `#define TENGINE            "Tengine"
#define TENGINE_VERSION    "%s"
#define TENGINE_VER        TENGINE "/" TENGINE_VERSION

#define NGINX_VAR `

const nginxBanner = `ngx_write_stderr("nginx version: " NGINX_VER_BUILD NGX_LINEFEED);`

// What -v says first: "Tengine version: Tengine/2.1.0 (nginx/1.6.2)", and two lines in 3.1.0.
const (
	tengine2Banner = `ngx_write_stderr("Tengine version: " TENGINE_VER " (" NGINX_VER ")" NGX_LINEFEED);`
	tengine3Banner = `ngx_write_stderr("Tengine version: " TENGINE_VER NGX_LINEFEED);
    ngx_write_stderr("nginx version: " NGINX_VER NGX_LINEFEED);`
)

// tengine are the edits that make a Tengine of a version, made of a version of nginx.
func tengine(v, nginx, banner string) []edit {
	return []edit{
		version(nginx),
		{nginxH, "#define NGINX_VAR ", fmt.Sprintf(tengineMacros, v)},
		{"src/core/nginx.c", nginxBanner, banner},
		{"src/core/nginx.c", configureArguments, configureArguments + loadedModules},
		{"src/http/ngx_http_header_filter_module.c", `"Server: " NGINX_VER CRLF`, `"Server: " TENGINE_VER CRLF`},
	}
}

const configureArguments = `ngx_write_stderr("configure arguments:" NGX_CONFIGURE NGX_LINEFEED);`

// loadedModules is the end of Tengine's -V: "    ngx_core_module (static)" and so on.
const loadedModules = `
        {
            ngx_uint_t  i;

            ngx_write_stderr("loaded modules:" NGX_LINEFEED);
            for (i = 0; ngx_modules[i]; i++) {
                ngx_write_stderr("    ");
                ngx_write_stderr(ngx_module_names[i]);
                ngx_write_stderr(" (static)" NGX_LINEFEED);
            }
        }
`

// reusePort is the directive reuse_port of the events block: all listening sockets become such as listen's reuseport
// asks for, one for each worker.
var reusePort = []edit{
	{"src/event/ngx_event.h", "    ngx_flag_t    accept_mutex;\n", "    ngx_flag_t    accept_mutex;\n    ngx_flag_t    reuse_port;\n"},
	{"src/event/ngx_event.c", "    { ngx_string(\"accept_mutex_delay\"),\n", `    { ngx_string("reuse_port"),
      NGX_EVENT_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      0,
      offsetof(ngx_event_conf_t, reuse_port),
      NULL },

    { ngx_string("accept_mutex_delay"),
`},
	{"src/event/ngx_event.c", "    ecf->accept_mutex = NGX_CONF_UNSET;\n", "    ecf->accept_mutex = NGX_CONF_UNSET;\n    ecf->reuse_port = NGX_CONF_UNSET;\n"},
	{"src/event/ngx_event.c", "    ngx_conf_init_value(ecf->accept_mutex, 0);\n", "    ngx_conf_init_value(ecf->accept_mutex, 0);\n    ngx_conf_init_value(ecf->reuse_port, 0);\n"},
	{"src/event/ngx_event.c", "            if (!ls[i].reuseport || ls[i].worker != 0) {\n", `            if (((ngx_event_conf_t *) ngx_event_get_conf(cycle->conf_ctx,
                                          ngx_event_core_module))->reuse_port)
            {
                ls[i].reuseport = 1;
            }

            if (!ls[i].reuseport || ls[i].worker != 0) {
`},
}

// before19 takes out what came with nginx 1.9: listen's reuseport (1.9.1) and -T (1.9.2).
var before19 = []edit{
	{"src/http/ngx_http_core_module.c", `"reuseport") == 0`, `"(no reuseport yet)") == 0`},
	{"src/core/nginx.c", "            case 'T':\n                ngx_test_config = 1;\n                ngx_dump_config = 1;\n                break;\n", ""},
}

// renamed gives the binary Tengine's name.
var renamed = []edit{{"auto/make", "${ngx_dirsep}nginx$ngx_binext", "${ngx_dirsep}tengine$ngx_binext"}}

// faults are those of nginx 1.6 on a system of today: struct crypt_data has no current_salt since glibc 2.28, and what
// falls through in a switch without a word is an error since GCC 7 (-W has -Wimplicit-fallthrough, and nginx -Werror).
var faults = []edit{
	{"src/os/unix/ngx_user.c", "    cd.initialized = 0;\n", strings.Join([]string{
		"    cd.initialized = 0;", "#ifdef __GLIBC__", "    /* work around the glibc bug */", "    cd.current_salt[0] = ~salt[0];", "#endif", "",
	}, "\n")},
	{"src/core/ngx_murmurhash.c", "        /* fall through */\n", ""},
}
