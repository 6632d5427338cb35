package templates

import _ "embed"

//go:embed wrk.lua
var wrkHook string

// WrkHook is the Lua script that wrk is given: it prints one line with what wrk knows after a measurement, in µs and
// bytes: the counts, the number of samples in the (back-filled) histogram, and about 175 quantiles of it.
func WrkHook() string { return wrkHook }
