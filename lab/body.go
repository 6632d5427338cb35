package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
)

// Body is a generated body: printable noise, which compresses like packed data, to three quarters.
type Body struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// NewBody is the body of a size, with its hash.
func NewBody(sizeBytes int64) (Body, error) {
	sum := sha256.New()
	_, err := io.CopyN(sum, BodyNoise(), sizeBytes)
	return Body{Bytes: sizeBytes, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// bodySeed makes bodies the same on every host and in every campaign.
const bodySeed = 20140917

// BodyNoise is what bodies of all sizes are the beginning of; it has no end.
func BodyNoise() io.Reader { return &noise{random: rand.NewPCG(bodySeed, bodySeed)} }

// letters are those of base64.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// noise reads as random letters, ten from each number.
type noise struct {
	random *rand.PCG
	bits   uint64
	left   int
}

func (n *noise) Read(p []byte) (int, error) {
	for i := range p {
		if n.left == 0 {
			n.bits, n.left = n.random.Uint64(), 10
		}
		p[i] = letters[n.bits&63]
		n.bits >>= 6
		n.left--
	}
	return len(p), nil
}
