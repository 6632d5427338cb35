package knob

import "ngxlab/lab"

// refusal is why a host cannot have what is asked of a knob; the zero value is none.
type refusal struct {
	reason    string
	cure      string
	privilege bool // another user could have it
}

func (r refusal) is() bool { return r.reason != "" }

// asFact is the fact with the refusal in it.
func (r refusal) asFact(f lab.KnobFact) lab.KnobFact {
	f.Reason, f.Cure, f.Privilege = r.reason, r.cure, r.privilege
	return f
}

// needsRoot refuses for lack of privilege.
func needsRoot(what string) refusal {
	return refusal{reason: what + " needs root", cure: "connect as root, or set `sudo: true` for the host", privilege: true}
}
