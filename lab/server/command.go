package server

import (
	"maps"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// commanded completes the serving of a server that is started by a command: no configuration of nginx, no stub_status.
func commanded(in Input, s lab.Serving) lab.Serving {
	c := numbered(*in.Command, in.Spec)
	s.Command, s.Count, s.DelayS, s.AtOnce = &c, c.Count, c.Delay.Seconds(), c.AtOnce
	if s.Count == nil {
		s.Count = in.Spec.Count
	}
	if c.Within.Duration > 0 {
		s.Deadline = c.Within
	}
	s.Expect = limits(s, nil)
	return s
}

// numbered is a command with the status port in the place of {status_port}: the server that is started has none that is
// polled, and may open one of its own there.
func numbered(c lab.ServerCommand, spec lab.ServerSpec) lab.ServerCommand {
	port := strings.NewReplacer("{status_port}", strconv.Itoa(statusPort(spec)))
	words := func(list []string) []string {
		var all []string
		for _, word := range list {
			all = append(all, port.Replace(word))
		}
		return all
	}
	texts := func(m map[string]string) map[string]string {
		m = maps.Clone(m)
		for name, text := range m {
			m[name] = port.Replace(text)
		}
		return m
	}
	c.Start, c.Stop, c.Version = words(c.Start), words(c.Stop), words(c.Version)
	c.Env, c.Files, c.PIDFile = texts(c.Env), texts(c.Files), port.Replace(c.PIDFile)
	return c
}
