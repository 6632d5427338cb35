package tune_test

import (
	"testing"

	"ngxlab/lab/tune"
)

// TestNumbersThatTheKernelReadsOtherwiseAreRefused: 0777 for net.core.somaxconn was tried on Linux 6.18, which kept 511.
func TestNumbersThatTheKernelReadsOtherwiseAreRefused(t *testing.T) {
	for name, values := range map[string]map[string]bool{
		"net.core.somaxconn":    {"0777": false, "0x1000": false, "777": true, "0": true},
		"net.ipv4.tcp_fastopen": {"0x3": false, "3": true},
		"net.ipv4.tcp_rmem":     {"4096 087380 6291456": false, "4096 07380 6291456": false, "4096 87380 6291456": true},
		"net.ipv4.ip_local_reserved_ports": {"8080,9000-9010": true, "8080 9000": true, "foo": false, "99999": false, "9-1": false,
			"1-": false, "65535": true},
		"net.ipv4.tcp_fastopen_key": {"00000000-00000001-00000002-00000003": true},
	} {
		for value, good := range values {
			if err := tune.Check(sysctl(name), value); (err == nil) != good {
				t.Errorf("%s = %q: %v", name, value, err)
			}
		}
	}
}
