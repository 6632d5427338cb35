package plan

import (
	"ngxlab/lab"
)

// directive is the value that a directive has in the configuration of a state.
func (p *planner) directive(host lab.HostName, s lab.State, name string) lab.Value {
	text := value(s, host, lab.KnobNginx, name)
	return lab.Value{Text: text, Absent: text == ""}
}
