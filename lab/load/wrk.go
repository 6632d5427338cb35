package load

import (
	"bytes"
	"strconv"

	"ngxlab/lab"
	"ngxlab/lab/outputs"
	"ngxlab/templates"
)

// wrk 4.x. Its threads hold the same number of connections each. It takes whole seconds only, and no fixed count.
var wrk = Tool{
	Name: "wrk", Package: "wrk", Command: "wrk", Loop: lab.ClosedLoop,
	Latency:  "from the write of the request to the end of the response; connecting is not in it; back-filled for coordinated omission",
	Threaded: true,
	command:  wrkCommand, parse: parseWrk, counts: wrkCounts,
	refused: func(status int) bool { return status > 399 },
	bytes:   wrkBytes,
}

func wrkCommand(a ask) lab.Command {
	argv := []string{"wrk", "-t" + strconv.Itoa(a.threads), "-c" + strconv.Itoa(a.connections),
		"-d" + strconv.Itoa(a.seconds) + "s", "--timeout", "10s"}
	c := lab.Command{Tool: "wrk"}
	if !a.warmup {
		argv = append(argv, "--latency", "-s", "{work}/hook.lua")
		c.Files = map[string]string{"hook.lua": templates.WrkHook()}
	}
	if !a.keepAlive {
		argv = append(argv, "-H", "Connection: close")
	}
	c.Argv = append(argv, a.url)
	return c
}

func parseWrk(p lab.Process) (lab.Report, error) { return outputs.ParseWrk(bytes.NewReader(p.Stdout)) }

// wrkCounts: requests are the responses read to their end. A response later than the time-out is among them, and counted
// as an error too; connect, read and write errors are not, each is an attempt of its own. A server that closes after
// each response without saying so causes as many read errors as requests, all of which were good.
func wrkCounts(f lab.Figures, unexpected float64) outcome {
	n, late := f[lab.Requests], f[lab.ErrTimeout]
	lost := f[lab.ErrConnect] + f[lab.ErrRead] + f[lab.ErrWrite]
	good := max(n-late-unexpected, 0)
	return outcome{good: good, broken: late + lost, unexpected: unexpected, bad: n - good + lost, attempts: n + lost}
}

// fewestPerConnection is the smallest keepalive_requests in use (nginx before 1.19.10); the last response on a
// connection is closeSaves shorter.
const fewestPerConnection = 100

// wrkBytes: wrk counts every byte read, headers included.
func wrkBytes(f lab.Figures, p lab.Probe, keepAlive bool) byteBalance {
	read, known := f[lab.BytesRead]
	n, each := f[lab.Requests], headerBytes(p, keepAlive)+float64(p.BodyBytes)
	b := byteBalance{known: known && p.HeaderBytes > 0, excess: read - n*each, perReply: each}
	if keepAlive {
		b.slack = n * float64(closeSaves) / fewestPerConnection
	}
	return b
}
