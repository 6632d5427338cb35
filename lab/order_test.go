package lab_test

import (
	"reflect"
	"slices"
	"testing"

	"ngxlab/lab"
)

// balance counts how often each state stands in each position, and how often each follows each other one.
func balance(orders [][]int, n int) (positions, follows map[[2]int]int) {
	positions, follows = map[[2]int]int{}, map[[2]int]int{}
	for _, row := range orders {
		for j, state := range row {
			positions[[2]int{state, j}]++
			if j > 0 {
				follows[[2]int{row[j-1], state}]++
			}
		}
	}
	return positions, follows
}

func TestOrdersBalancePositionsAndPredecessors(t *testing.T) {
	for n := 2; n <= 9; n++ {
		rounds := n
		if n%2 == 1 {
			rounds = 2 * n
		}
		orders := lab.Orders(uint64(n), rounds, n)
		positions, follows := balance(orders, n)
		for state := range n {
			for other := range n {
				if got := positions[[2]int{state, other}]; got != rounds/n {
					t.Errorf("n=%d: state %d stands %d times at %d, want %d", n, state, got, other, rounds/n)
				}
				if got := follows[[2]int{state, other}]; state != other && got != rounds/n {
					t.Errorf("n=%d: %d follows %d %d times, want %d", n, other, state, got, rounds/n)
				}
			}
		}
	}
}

func TestOrdersBalancePositionsInEveryWholeTurn(t *testing.T) {
	for n := 1; n <= 8; n++ {
		orders := lab.Orders(7, 5*n, n)
		for turn := range 5 {
			positions, _ := balance(orders[turn*n:(turn+1)*n], n)
			for key, got := range positions {
				if got != 1 {
					t.Errorf("n=%d turn %d: state %d stands %d times at %d", n, turn, key[0], got, key[1])
				}
			}
		}
	}
}

func TestOrdersAreFixedByTheSeed(t *testing.T) {
	a, b := lab.Orders(1, 20, 6), lab.Orders(1, 20, 6)
	if !reflect.DeepEqual(a, b) {
		t.Error("one seed gave two orders")
	}
	if reflect.DeepEqual(a, lab.Orders(2, 20, 6)) {
		t.Error("two seeds gave one order")
	}
	if !reflect.DeepEqual(a[:8], lab.Orders(1, 8, 6)) {
		t.Error("fewer rounds are not a beginning of more rounds")
	}
	if lab.Orders(1, 0, 3) != nil || lab.Orders(1, 3, 0) != nil {
		t.Error("no rounds or no states have an order")
	}
}

func TestShuffleIsAPermutationOfItsOwnPerRoundAndState(t *testing.T) {
	a := lab.Shuffle(1, 2, 3, 8)
	sorted := slices.Sorted(slices.Values(a))
	if !slices.Equal(sorted, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Fatalf("%v is not a permutation", a)
	}
	if !slices.Equal(a, lab.Shuffle(1, 2, 3, 8)) {
		t.Error("not fixed by the seed")
	}
	for _, other := range [][]int{lab.Shuffle(2, 2, 3, 8), lab.Shuffle(1, 3, 3, 8), lab.Shuffle(1, 2, 4, 8)} {
		if slices.Equal(a, other) {
			t.Errorf("another seed, round or state gave the same %v", a)
		}
	}
}

func TestSeedDependsOnFileAndCampaignAndFitsJSONNumbers(t *testing.T) {
	a := lab.Seed("abc", "one")
	if a != lab.Seed("abc", "one") || a == lab.Seed("abc", "two") || a == lab.Seed("abd", "one") {
		t.Error("seed is not a function of file and campaign")
	}
	if lab.Seed("ab", "c") == lab.Seed("a", "bc") {
		t.Error("file and campaign run into each other")
	}
	for _, campaign := range []lab.CampaignID{"a", "b", "c", "d", "e"} {
		if seed := lab.Seed("x", campaign); seed >= 1<<53 {
			t.Errorf("seed %d is not exact as a JSON number", seed)
		}
	}
}
