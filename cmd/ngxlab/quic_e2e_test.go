package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"github.com/quic-go/quic-go/http3"
)

// overHTTP3 asks for a URL over QUIC and nothing else, and returns what was answered.
func overHTTP3(t *testing.T, url string) (protocol string, status int, body string) {
	t.Helper()
	transport := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the lab's own certificate, which no one signed
	defer func() { must(t, transport.Close()) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	response, err := transport.RoundTrip(request)
	must(t, err)
	text, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, response.Body.Close())
	return response.Proto, response.StatusCode, string(text)
}
