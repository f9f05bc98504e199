// Package restconfig reads a cluster's kubeconfig for a client.
package restconfig

import (
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

// answerLimit is how much of any other answer is read, in bytes, watches and logs apart. What etcd stores has 1.5 MB at most, but
// a list has many of those, and a definition may have the API server add defaults of any size to each.
const answerLimit = 64 << 20

// Load reads a kubeconfig. Clients of it follow redirections to the same server only, such as that from …/proxy to …/proxy/:
// a server that is no API server could have this machine ask addresses of its choice. They read 1 MiB of a refusal, and 64 MiB of an
// answer that is no stream; what is larger gives an [http.MaxBytesError].
func Load(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return careful{next} })
	return config, nil
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
	case resp.StatusCode == http.StatusOK && !streams(req):
		resp.Body = http.MaxBytesReader(nil, resp.Body, answerLimit)
	}
	return resp, err
}

// streams says that an answer comes piece by piece, and may never end.
func streams(req *http.Request) bool {
	return req.URL.Query().Has("watch") || strings.HasSuffix(req.URL.Path, "/log")
}

// LeadsAway says whether an answer has a Location on another server than the one that was asked.
func LeadsAway(resp *http.Response) bool {
	if resp.Header.Get("Location") == "" {
		return false
	}
	to, err := resp.Location()
	return err != nil || to.Scheme != resp.Request.URL.Scheme || to.Host != resp.Request.URL.Host
}
