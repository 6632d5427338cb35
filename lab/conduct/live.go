package conduct

import "ngxlab/lab"

// live reports whether a knob takes effect on a server that already runs. What is not known to does not.
func live(lab.KnobID) bool { return false }
