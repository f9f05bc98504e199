// Package restconfig reads a cluster's kubeconfig for a client.
package restconfig

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// refusalLimit is how much of an answer with an error is read, in bytes. An API server complains of each mistake in an object,
// and quotes it: 16 KB of a definition can have a gigabyte of complaints.
const refusalLimit = 1 << 20

// What etcd stores has 1.5 MB at most, but a list has many of those, and a definition may have the API server add defaults of any
// size to each.
const (
	// answerLimit is how much of any other answer is read, in bytes. Only logs and watches have no end.
	answerLimit = 64 << 20
	// EventLimit is how much of one event of a watch is read, in bytes.
	EventLimit = 16 << 20
)

// Load reads a kubeconfig. Clients of it follow redirections to the same server only, such as that from …/proxy to …/proxy/:
// a server that is no API server could have this machine ask addresses of its choice. They read 1 MiB of a refusal, 64 MiB of an
// answer, and 16 MiB of an event; what is larger gives an [http.MaxBytesError].
func Load(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	Guard(config)
	return config, nil
}

// Guard makes clients of a config such as those of [Load].
func Guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return careful{next} })
}

type careful struct{ http.RoundTripper }

// WrappedRoundTripper lets client-go cancel requests.
func (t careful) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// RoundTrip is part of [http.RoundTripper].
func (t careful) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil && resp.StatusCode/100 == 3 && LeadsAway(resp) {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the API server answers %s with a redirection to another server", req.URL.Path)
	}
	switch {
	case err != nil:
	case resp.StatusCode >= http.StatusBadRequest:
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, refusalLimit), resp.Body}
	case resp.StatusCode == http.StatusSwitchingProtocols || strings.HasPrefix(req.URL.Path, "/api/v1/") && strings.HasSuffix(req.URL.Path, "/log"):
	case req.URL.Query().Has("watch"):
		resp.Body = &events{ReadCloser: resp.Body}
	default:
		resp.Body = http.MaxBytesReader(nil, resp.Body, answerLimit)
	}
	return resp, err
}

// events are those of a watch, one in each line.
type events struct {
	io.ReadCloser
	line int64 // bytes read of this one
}

// Read is part of [io.Reader].
func (e *events) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		e.line = int64(n - end - 1)
	} else {
		e.line += int64(n)
	}
	if e.line > EventLimit {
		return 0, &http.MaxBytesError{Limit: EventLimit}
	}
	return n, err
}

// LeadsAway says whether an answer has a Location on another server than the one that was asked.
func LeadsAway(resp *http.Response) bool {
	if resp.Header.Get("Location") == "" {
		return false
	}
	to, err := resp.Location()
	return err != nil || to.Scheme != resp.Request.URL.Scheme || to.Host != resp.Request.URL.Host
}
