// Package lab holds the words of ngxlab as types, and the pure logic that needs nothing else.
//
// It is data: no interface, no input or output, no clock. Every other package speaks in these types.
// Units are in the names (S seconds, US microseconds, Bytes, PerS) or in the type (Duration, Instant).
// JSON keys are snake_case; a value that is unknown is absent, never zero.
package lab

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// HostName is the name that the experiment file gives a host.
type HostName string

// CampaignID names one execution of an experiment, e.g. "quickstart-20261130-171502".
type CampaignID string

// Instant is a reading of one host's CLOCK_MONOTONIC in nanoseconds. Instants of different hosts are
// comparable only through a Clock.
type Instant int64

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Clock relates a host's monotonic clock to this process's: at local time At (which carries Go's monotonic
// reading) the host's clock read Host, give or take UncertaintyS seconds (half the shortest round trip). WallOffsetS is
// what the host's wall clock is ahead of ours; nothing is measured by it.
type Clock struct {
	At           time.Time `json:"at"`
	Host         Instant   `json:"host_ns"`
	UncertaintyS float64   `json:"uncertainty_s"`
	WallOffsetS  float64   `json:"wall_offset_s"`
}

// Instant returns what the host's monotonic clock reads at local time t.
func (c Clock) Instant(t time.Time) Instant { return c.Host.Add(t.Sub(c.At)) }

// Duration is a time.Duration that is written as seconds in JSON.
type Duration struct{ time.Duration }

// Seconds makes a Duration of s seconds, rounded to the nanosecond so that JSON gives back what it was given.
func Seconds(s float64) Duration {
	return Duration{time.Duration(math.Round(s * float64(time.Second)))}
}

// MarshalJSON writes the duration as a number of seconds.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.Seconds()) }

// UnmarshalJSON reads a number of seconds.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var s float64
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("duration in seconds: %w", err)
	}
	*d = Seconds(s)
	return nil
}
