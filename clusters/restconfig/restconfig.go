// Package restconfig reads a cluster's kubeconfig for a client.
package restconfig

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Load reads a kubeconfig. Clients of it follow no redirection: an API server sends none, and a server that is not what it
// says could have this machine ask addresses of its choice.
func Load(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRedirects{next} })
	return config, nil
}

type noRedirects struct{ http.RoundTripper }

// WrappedRoundTripper lets client-go cancel requests.
func (t noRedirects) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// RoundTrip is part of [http.RoundTripper].
func (t noRedirects) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil && resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "" {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the API server answers %s with a redirection", req.URL.Path)
	}
	return resp, err
}
