package hosts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"

	"ngxlab/agent/wire"
	"ngxlab/hosts/agents"
)

// agentSet is the agents that may be started on a host: one for each architecture.
type agentSet map[string]program // by architecture, as Go names it

// program is an agent's binary.
type program struct {
	hash    string // SHA-256, in hexadecimal
	content func() ([]byte, error)
}

// agentsFor is the embedded agents, or the one that the options name.
func agentsFor(o Options) (agentSet, error) {
	if o.Agent == "" {
		return embedded()
	}
	content, err := os.ReadFile(o.Agent)
	if err != nil {
		return nil, fmt.Errorf("read the agent: %w", err)
	}
	set := agentSet{}
	for _, m := range machines {
		set[m.arch] = program{hashOf(content), func() ([]byte, error) { return content, nil }}
	}
	return set, nil
}

// embedded asks for the hashes of the embedded agents once.
var embedded = sync.OnceValues(func() (agentSet, error) {
	set := agentSet{}
	var missing error
	for _, m := range machines {
		hash, err := agents.Hash(m.arch)
		if err != nil {
			missing = err
			continue
		}
		set[m.arch] = program{hash, sync.OnceValues(func() ([]byte, error) { return agents.For(m.arch) })} // unpacked for many hosts
	}
	if len(set) == 0 {
		return nil, missing
	}
	return set, nil
})

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// name is the file of an agent on a host; clean, on the host, knows agents by it.
func (p program) name() string { return wire.AgentPrefix + p.hash[:16] }

// names are the file names by architecture.
func (s agentSet) names() map[string]string {
	names := map[string]string{}
	for arch, p := range s {
		names[arch] = p.name()
	}
	return names
}

// of returns the agent for a machine, as uname -m names it, and its file name.
func (s agentSet) of(uname string) (binary []byte, name string, err error) {
	arch := archOf(uname)
	if arch == "" {
		var supported []string
		for _, m := range machines {
			supported = append(supported, m.uname[0])
		}
		return nil, "", fmt.Errorf("the host is a %s machine: there are agents for Linux on %s", uname, strings.Join(supported, " and "))
	}
	p, ok := s[arch]
	if !ok {
		_, err := agents.For(arch)
		return nil, "", err
	}
	binary, err = p.content()
	return binary, p.name(), err
}

// is reports whether the agent that was seen on a host is the one meant for it.
func (s agentSet) is(there seen) bool {
	p, ok := s[archOf(there.machine)]
	return ok && strings.HasSuffix(there.has, ", "+p.hash)
}

// accept is the error of a greeting by another agent.
func (s agentSet) accept(g wire.Greeting) error {
	var hashes []string
	for _, p := range s {
		if p.hash == g.Hash && g.Protocol == wire.Protocol {
			return nil
		}
		hashes = append(hashes, p.hash)
	}
	if g.Protocol != wire.Protocol {
		return fmt.Errorf("the agent speaks protocol %d, this program %d", g.Protocol, wire.Protocol)
	}
	return fmt.Errorf("the agent is another program than the one sent: its hash is %s, not %s", g.Hash, strings.Join(hashes, " or "))
}
