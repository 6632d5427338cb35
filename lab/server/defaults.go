package server

import (
	"slices"
	"strings"

	"ngxlab/lab"
)

// ownDefault is what nginx does when a configuration does not name a directive.
type ownDefault struct {
	name   string
	values string // ways to write it, separated by |, the shortest known to people first
	from   []int  // the version that it holds from; none: from before oldest on
	before []int  // the first version that it no longer holds in; none: it still holds in 1.26
}

// ownDefaults are those of the documentation of nginx 1.26 (ngx_core_module, ngx_http_core_module, the modules gzip, log,
// proxy, ssl, v2 and v3) that do not depend on the platform, and of Linux the backlog (NGX_LISTEN_BACKLOG). Versions are those in
// which the documentation says that they changed.
var ownDefaults = []ownDefault{
	{name: "accept_mutex", values: "off", from: []int{1, 11, 3}}, {name: "accept_mutex", values: "on", before: []int{1, 11, 3}},
	{name: "accept_mutex_delay", values: "500ms"}, {name: "multi_accept", values: "off"}, {name: "worker_connections", values: "512"},
	{name: "worker_aio_requests", values: "32"}, {name: "worker_priority", values: "0"}, {name: "worker_processes", values: "1"},
	{name: "pcre_jit", values: "off"},
	{name: "listen.backlog", values: "511"}, {name: "listen.reuseport", values: "off"}, {name: "listen.deferred", values: "off"},
	{name: "absolute_redirect", values: "on"}, {name: "aio", values: "off"}, {name: "chunked_transfer_encoding", values: "on"},
	{name: "client_body_timeout", values: minute}, {name: "client_header_buffer_size", values: "1k|1K|1024"},
	{name: "client_header_timeout", values: minute}, {name: "client_max_body_size", values: "1m|1M|1024k|1048576"},
	{name: "default_type", values: "text/plain"}, {name: "directio", values: "off"}, {name: "etag", values: "on"},
	{name: "if_modified_since", values: "exact"}, {name: "ignore_invalid_headers", values: "on"},
	{name: "keepalive_requests", values: "1000", from: []int{1, 19, 10}}, {name: "keepalive_requests", values: "100", before: []int{1, 19, 10}},
	{name: "keepalive_time", values: "1h|60m|3600s|3600", from: []int{1, 19, 10}}, {name: "keepalive_timeout", values: "75s|75"},
	{name: "large_client_header_buffers", values: "4 8k|4 8K|4 8192"},
	{name: "lingering_close", values: "on"}, {name: "lingering_time", values: "30s|30"}, {name: "lingering_timeout", values: "5s|5"},
	{name: "log_not_found", values: "on"}, {name: "log_subrequest", values: "off"}, {name: "merge_slashes", values: "on"},
	{name: "open_file_cache", values: "off"}, {name: "open_file_cache_errors", values: "off"},
	{name: "open_file_cache_min_uses", values: "1"}, {name: "open_file_cache_valid", values: minute},
	{name: "output_buffers", values: "2 32k|2 32K|2 32768", from: []int{1, 9, 5}}, {name: "port_in_redirect", values: "on"},
	{name: "postpone_output", values: "1460"}, {name: "read_ahead", values: "0"}, {name: "recursive_error_pages", values: "off"},
	{name: "request_pool_size", values: "4k|4K|4096"}, {name: "reset_timedout_connection", values: "off"}, {name: "satisfy", values: "all"},
	{name: "send_lowat", values: "0"}, {name: "send_timeout", values: minute}, {name: "sendfile", values: "off"},
	{name: "sendfile_max_chunk", values: "2m|2M|2048k|2097152", from: []int{1, 21, 4}}, {name: "sendfile_max_chunk", values: "0", before: []int{1, 21, 4}},
	{name: "server_name_in_redirect", values: "off"}, {name: "server_names_hash_max_size", values: "512"}, {name: "server_tokens", values: "on"},
	{name: "tcp_nodelay", values: "on"}, {name: "tcp_nopush", values: "off"},
	{name: "types_hash_bucket_size", values: "64"}, {name: "types_hash_max_size", values: "1024"}, {name: "underscores_in_headers", values: "off"},
	{name: "gzip", values: "off"}, {name: "gzip_comp_level", values: "1"}, {name: "gzip_http_version", values: "1.1"},
	{name: "gzip_min_length", values: "20"}, {name: "gzip_proxied", values: "off"}, {name: "gzip_static", values: "off"}, {name: "gzip_vary", values: "off"},
	{name: "autoindex", values: "off"}, {name: "open_log_file_cache", values: "off"},
	{name: "proxy_buffering", values: "on"}, {name: "proxy_connect_timeout", values: minute}, {name: "proxy_read_timeout", values: minute},
	{name: "proxy_request_buffering", values: "on"}, {name: "proxy_send_timeout", values: minute},
	{name: "ssl_buffer_size", values: "16k|16K|16384"}, {name: "ssl_prefer_server_ciphers", values: "off"}, {name: "ssl_session_cache", values: "none"},
	{name: "ssl_session_tickets", values: "on"}, {name: "ssl_session_timeout", values: "5m|300s|300"},
	{name: "http2", values: "off"}, {name: "http3", values: "on"}, {name: "quic_retry", values: "off"}, {name: "quic_gso", values: "off"},
}

// minute is how people write the commonest time-out.
const minute = "60s|60|1m"

// oldest is the version that a build of unknown version is at least: the oldest that a distribution of the last ten years
// ships (Ubuntu 18.04, Debian 10).
const oldest = "1.14.0"

// DoesAnyway reports whether nginx does what a directive says also when its configuration does not name the directive at
// all: the value is nginx's own default. False when that is not sure: of a directive that takes over the value of the
// block around it, or that another version may have another default of; and of Tengine, which has defaults of its own.
func DoesAnyway(recipe lab.Recipe, directive, value string) bool {
	p := locate(directive)
	name := p.name
	switch allowed := allowedIn(p.name); {
	case p.problem != nil || recipe.Flavor != "" && recipe.Flavor != lab.FlavorNginx:
		return false
	case p.parameter != "":
		name = "listen." + p.parameter
	case len(allowed) == 0 || allowed[0] != p.context:
		return false
	}
	return slices.ContainsFunc(ownDefaults, func(d ownDefault) bool {
		is := func(written string) bool { return Same(directive, written, value) }
		return d.name == name && d.holds(NginxVersion(recipe)) && slices.ContainsFunc(strings.Split(d.values, "|"), is)
	})
}

// holds reports whether the default is that of a version; "" is not known.
func (d ownDefault) holds(version string) bool {
	if version == "" {
		return !older(oldest, d.from...) && len(d.before) == 0
	}
	return !older(version, d.from...) && (len(d.before) == 0 || older(version, d.before...))
}
