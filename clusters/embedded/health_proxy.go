package embedded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
)

// healthProxy is the controller manager's way to the API server. A controller manager does
// nothing before /healthz is green, asks for it once a second, and /healthz is red for
// the first second of every API server because two of its hooks begin with a pause of
// a second. The proxy leaves those two out of the question, and holds the answer until
// it is a yes. Everything else it passes on.
type healthProxy struct {
	listener net.Listener
	server   http.Server
	proxy    *httputil.ReverseProxy
	upstream *url.URL
}

const (
	// healthPath is what a controller manager asks for.
	healthPath = "/healthz"
	// healthHold bounds how long the answer is held; the question is asked again.
	healthHold = 5 * time.Second
)

// slowHooks are the hooks that begin with a pause: wait.Poll with a second in
// pkg/registry/rbac/rest and pkg/registry/scheduling/rest. Nobody who may do everything
// needs what they write, and nothing else waits for it.
var slowHooks = url.Values{"exclude": {
	"poststarthook/rbac/bootstrap-roles", "poststarthook/scheduling/bootstrap-system-priority-classes",
}}

// openHealthProxy listens on a port of its own and writes the kubeconfig that leads there.
func openHealthProxy(plane string) (*healthProxy, error) {
	d, err := readDescription(plane)
	if err != nil {
		return nil, err
	}
	upstream, err := url.Parse(d.Server)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(plane, pki)
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	trusted, err := cert.NewPoolFromBytes(authority)
	if err != nil {
		return nil, err
	}
	serving, err := tls.LoadX509KeyPair(filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key"))
	if err != nil {
		return nil, err
	}
	user, err := readPair(dir, controllerManager)
	if err != nil {
		return nil, err
	}
	identity, err := tls.X509KeyPair(user.cert, user.key)
	if err != nil {
		return nil, err
	}
	g := &healthProxy{upstream: upstream}
	g.proxy = &httputil.ReverseProxy{
		Rewrite: g.rewrite,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{identity}},
			ForceAttemptHTTP2: true,
		},
		FlushInterval: -1, // watches are told at once
		ErrorLog:      log.New(os.Stderr, "health proxy: ", log.LstdFlags),
	}
	g.server = http.Server{
		Handler: g,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{serving}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert,
			VerifyConnection: onlyUser(identity.Leaf),
		},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // a line for each stranger who knocks would fill the disk
	}
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	return g, writeKubeconfig(filepath.Join(plane, kubeconfigOf(controllerManager)), "https://"+g.listener.Addr().String(), "health-proxy", authority, user)
}

func (g *healthProxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(g.upstream)
	if r.In.URL.Path == healthPath {
		r.Out.URL.RawQuery = slowHooks.Encode()
	}
}

// ServeHTTP passes a request on.
func (g *healthProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == healthPath {
		g.awaitHealth(r.Context())
	}
	g.proxy.ServeHTTP(w, r)
}

// awaitHealth returns when the API server is healthy, or when it has taken long.
func (g *healthProxy) awaitHealth(ctx context.Context) {
	_ = wait.PollUntilContextTimeout(ctx, apiPoll, healthHold, true, func(ctx context.Context) (bool, error) {
		return g.healthy(ctx), nil
	})
}

func (g *healthProxy) healthy(ctx context.Context) bool {
	question := g.upstream.JoinPath(healthPath)
	question.RawQuery = slowHooks.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, question.String(), nil)
	if err != nil {
		return false
	}
	answer, err := g.proxy.Transport.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// onlyUser lets nobody in but the owner of a certificate: everybody else has a way
// to the API server of their own.
func onlyUser(user *x509.Certificate) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || !s.PeerCertificates[0].Equal(user) {
			return errors.New("not the controller manager")
		}
		return nil
	}
}

// serve passes requests on until the proxy is closed.
func (g *healthProxy) serve() {
	if err := g.server.ServeTLS(g.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "health proxy:", err)
	}
}

func (g *healthProxy) close() { _ = g.server.Close() }
