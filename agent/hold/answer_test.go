package hold

import (
	"strings"
	"testing"
)

const chunked = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"

func TestEndOfAnAnswerIsFoundHoweverItIsCut(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n",
		"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n",
		chunked + "6\r\nhello\n\r\n0\r\n\r\n",
		chunked + "1;x=y\r\nh\r\n5\r\nello\n\r\n0\r\nTrailer: yes\r\n\r\n",
		chunked + "5\r\n0\r\n\r\n\r\n0\r\n\r\n",
	} {
		for size := 1; size <= len(text); size++ {
			a, rest, done := &answer{}, text, false
			for !done && rest != "" {
				part := rest[:min(size, len(rest))]
				rest = rest[len(part):]
				var err error
				if done, err = a.feed([]byte(part)); err != nil {
					t.Fatalf("%q in parts of %d: %v", text, size, err)
				}
			}
			if !done || rest != "" {
				t.Errorf("%q in parts of %d: done %v, %q left", text, size, done, rest)
			}
		}
	}
}

func TestAnswersWithoutUseAreErrors(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n", "SSH-2.0-OpenSSH\r\n\r\n", "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
		chunked + "z\r\n", chunked + "ffffffffffffffff\r\n", chunked + "0\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHead), chunked + strings.Repeat("1", maxHead+1),
	} {
		if done, err := (&answer{}).feed([]byte(text)); err == nil {
			t.Errorf("%.60q: done %v, no error", text, done)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n", 3)
	f.Add(chunked+"6\r\nhello\n\r\n0\r\n\r\n", 70)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		whole := &answer{}
		done, err := whole.feed([]byte(text))
		if cut < 0 || cut > len(text) || err != nil {
			return
		}
		parts := &answer{}
		first, err := parts.feed([]byte(text[:cut]))
		if err != nil || first && cut < len(text) {
			t.Fatalf("whole: done %v; its first %d bytes: done %v, %v", done, cut, first, err)
		}
		if first {
			return
		}
		second, err := parts.feed([]byte(text[cut:]))
		if err != nil || second != done {
			t.Errorf("whole: done %v; in two parts: done %v, %v", done, second, err)
		}
	})
}
