package lab

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Seed derives the seed of a campaign from the hash of its experiment file and its name. It is below 2^53, so that
// every reader of JSON and SQLite keeps it exactly.
func Seed(fileHash string, campaign CampaignID) uint64 {
	sum := sha256.Sum256([]byte(fileHash + "\x00" + string(campaign)))
	return binary.BigEndian.Uint64(sum[:8]) >> 11
}

// Orders returns, for each of rounds rounds, the order in which n states are measured, as indices 0…n−1.
//
// The rows are those of Williams designs (E. J. Williams, Aust. J. Sci. Res. A 2, 1949): over every n rounds each
// state stands once in each position, and over a whole design (n rounds when n is even, 2n when it is odd) each
// state follows every other equally often. States and rows are permuted by the seed, afresh for every design.
func Orders(seed uint64, rounds, n int) [][]int {
	if n <= 0 || rounds <= 0 {
		return nil
	}
	random := stream(seed, "orders", 0, 0)
	orders := make([][]int, 0, rounds)
	for len(orders) < rounds {
		orders = append(orders, williams(random, n)...)
	}
	return orders[:rounds]
}

// williams is one whole design with states and rows permuted. For odd n the second half mirrors the first; rows are
// permuted within the halves only, so that each half remains a Latin square.
func williams(random *rand.Rand, n int) [][]int {
	label := random.Perm(n)
	square := make([][]int, n)
	for i, shift := range random.Perm(n) {
		square[i] = make([]int, n)
		for j, state := range zigzag(n) {
			square[i][j] = label[(state+shift)%n]
		}
	}
	if n%2 == 0 || n == 1 {
		return square
	}
	for _, i := range random.Perm(n) {
		mirrored := make([]int, n)
		for j, state := range square[i] {
			mirrored[n-1-j] = state
		}
		square = append(square, mirrored)
	}
	return square
}

// zigzag is 0, 1, n−1, 2, n−2, …: neighbours differ by every residue once (twice when n is odd).
func zigzag(n int) []int {
	row := make([]int, n)
	for j := 1; j < n; j++ {
		if j%2 == 1 {
			row[j] = (j + 1) / 2
		} else {
			row[j] = n - j/2
		}
	}
	return row
}

// Shuffle returns the order, as indices 0…n−1, of the n load points of one state (its index) in one round (from 1).
func Shuffle(seed uint64, round, state, n int) []int {
	return stream(seed, "loads", round, state).Perm(n)
}

// stream is a source of random numbers of its own for every use, so that one use never shifts another.
func stream(seed uint64, use string, a, b int) *rand.Rand {
	text := binary.BigEndian.AppendUint64([]byte(use), seed)
	text = binary.BigEndian.AppendUint64(text, uint64(a))
	text = binary.BigEndian.AppendUint64(text, uint64(b))
	sum := sha256.Sum256(text)
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}
