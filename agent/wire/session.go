package wire

import (
	"io"

	"github.com/hashicorp/yamux"
)

// Session is how both ends set yamux up; what it has to say goes to log.
func Session(log io.Writer) *yamux.Config {
	c := yamux.DefaultConfig()
	c.KeepAliveInterval = KeepAlive
	c.ConnectionWriteTimeout = GiveUp // also how long an answer to a keep-alive may take
	c.StreamOpenTimeout = 0           // the requests have deadlines of their own
	c.StreamCloseTimeout = 10 * KeepAlive
	c.LogOutput = log
	return c
}
