package lab

import "testing"

func TestLoadIsSentWhereTheFileSaysOrElseWhereTheLinkFoundTheHost(t *testing.T) {
	p := Plan{
		Experiment: Experiment{Hosts: []Host{
			{Name: "here", Local: true}, {Name: "told", Address: "web", LoadAt: "10.9.0.1"}, {Name: "alias", Address: "web"},
			{Name: "plain", Address: "10.0.0.3"}, {Name: "container", Docker: &DockerHost{}},
		}},
		Facts: map[HostName]Facts{
			"here": {Address: "192.0.2.1"}, "told": {Address: "10.0.0.1"}, "alias": {Address: "10.0.0.2"}, "container": {Address: "172.20.0.2"},
		},
	}
	want := map[HostName]string{
		"here": "127.0.0.1", "told": "10.9.0.1", "alias": "10.0.0.2", "plain": "10.0.0.3", "container": "172.20.0.2", "nobody": "",
	}
	for name, address := range want {
		if got := p.LoadAddress(name); got != address {
			t.Errorf("%s is loaded at %q, want %q", name, got, address)
		}
	}
}
