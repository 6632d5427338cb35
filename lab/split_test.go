package lab_test

import (
	"slices"
	"testing"

	"ngxlab/lab"
)

func TestSplitLosesNothing(t *testing.T) {
	if got := lab.Split(1000, 3); !slices.Equal(got, []int{334, 333, 333}) {
		t.Errorf("1000 over 3 is %v", got)
	}
	for total := range 60 {
		for parts := 1; parts < 20; parts++ {
			shares, sum := lab.Split(total, parts), 0
			for _, share := range shares {
				sum += share
			}
			if sum != total || len(shares) != parts || slices.Max(shares)-slices.Min(shares) > 1 {
				t.Errorf("%d over %d is %v", total, parts, shares)
			}
		}
	}
	if lab.Split(10, 0) != nil {
		t.Error("no parts have shares")
	}
}

func TestParseCPUsReadsKernelLists(t *testing.T) {
	for list, want := range map[string][]int{"": nil, "0": {0}, "0-3": {0, 1, 2, 3}, "8,0-2, 1": {0, 1, 2, 8}} {
		if got, err := lab.ParseCPUs(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %v, %v; want %v", list, got, err, want)
		}
	}
	for _, list := range []string{"a", "1-", "3-1", "-1", "0,,1", "0-999999999"} {
		if got, err := lab.ParseCPUs(list); err == nil {
			t.Errorf("%q is taken for %v", list, got)
		}
	}
}

func FuzzParseCPUs(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, list string) {
		cpus, err := lab.ParseCPUs(list)
		if err == nil && !slices.IsSorted(cpus) {
			t.Errorf("%q gives %v", list, cpus)
		}
	})
}
