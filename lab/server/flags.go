package server

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
)

// flags are directives that are on or off and nothing else (NGX_CONF_FLAG in the command tables of nginx 1.26 and
// of Tengine), and parameters of listen that stand alone.
var flags = []string{
	"accept_mutex", "multi_accept", "pcre_jit", "absolute_redirect", "chunked_transfer_encoding", "etag", "ignore_invalid_headers",
	"log_not_found", "log_subrequest", "merge_slashes", "open_file_cache_errors", "port_in_redirect", "recursive_error_pages",
	"reset_timedout_connection", "sendfile", "server_name_in_redirect", "tcp_nodelay", "tcp_nopush", "underscores_in_headers",
	"gzip", "gzip_vary", "autoindex", "proxy_buffering", "proxy_request_buffering", "ssl_prefer_server_ciphers", "ssl_session_tickets",
	"ssl_reject_handshake", "http2", "http3", "quic_retry", "quic_gso", "quic_bpf", "reuse_port",
	"listen.reuseport", "listen.deferred", "listen.bind", "listen.ssl", "listen.http2", "listen.proxy_protocol",
}

// Unfit says what is wrong with the value of a directive whatever the host and the build; "" when nothing is known to be.
func Unfit(directive, value string) string {
	p := locate(directive)
	name := p.name
	if p.parameter != "" {
		name = "listen." + p.parameter
	}
	switch word := lab.OnOff(strings.ToLower(lab.Unquoted(strings.TrimSpace(value)))); {
	case p.problem != nil, !slices.Contains(flags, name), word == "on", word == "off":
		return ""
	}
	return fmt.Sprintf("%s is on or off, not %q", name, value)
}
