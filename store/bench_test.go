package store

import (
	"context"
	"fmt"
	"testing"

	"ngxlab/lab"
)

func BenchmarkImport(b *testing.B) {
	s, _ := opened(b)
	begun(b, s, "c")
	batch := make([]lab.Run, 5000)
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		for j := range batch {
			batch[j] = imported(i*len(batch) + j + 1)
		}
		must(b, s.Import(context.Background(), "c", batch))
	}
	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "runs/s")
}

func imported(round int) lab.Run {
	return lab.Run{
		Cell: lab.CellID{Target: "web", State: "default", Load: "wrk 10"}, Round: round, Attempt: 1, Part: 1, Began: began, Validity: lab.Clean,
		Processes: []lab.Process{{Host: "load", Command: lab.Command{Tool: "wrk"}, Stdout: []byte(fmt.Sprint("Requests/sec: ", round))}},
		Figures:   lab.Figures{lab.Goodput: float64(round), lab.P50S: 0.001, lab.P99S: 0.002, lab.Requests: 1000},
	}
}

func BenchmarkCommit(b *testing.B) {
	s, _ := opened(b)
	begun(b, s, "c")
	for i := 1; b.Loop(); i++ {
		commit(b, s, "c", run("default", i))
	}
}

func BenchmarkResults10000(b *testing.B) {
	s, _ := opened(b)
	begun(b, s, "c")
	batch := make([]lab.Run, 10_000)
	for i := range batch {
		batch[i] = run("default", i+1)
	}
	must(b, s.Import(context.Background(), "c", batch))
	for b.Loop() {
		_, err := s.Results(context.Background(), "c", Options{})
		must(b, err)
	}
}

// BenchmarkListing lists the campaigns and the cells of the last in a file of a million runs; making the file takes half
// a minute and does not count.
func BenchmarkListing(b *testing.B) {
	const campaigns, perCampaign = 50, 20_000
	s, _ := opened(b)
	batch := make([]lab.Run, perCampaign)
	for i := range batch {
		batch[i] = imported(i + 1)
	}
	for i := range campaigns {
		id := lab.CampaignID(fmt.Sprint("c", i))
		begun(b, s, id)
		must(b, s.Import(context.Background(), id, batch))
	}
	for b.Loop() {
		_, err := s.Campaigns(context.Background())
		must(b, err)
		_, err = s.Cells(context.Background(), "c49")
		must(b, err)
		_, err = s.Latest(context.Background())
		must(b, err)
	}
}
