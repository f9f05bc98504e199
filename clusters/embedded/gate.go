package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// gate is the controller manager's way to the API server. A controller manager does
// nothing before /healthz is green, asks once a second, and /healthz is red for the
// first second of every API server because two of its hooks begin with a pause. The
// gate answers that one question with /livez, which is green as soon as the API
// works, and passes on everything else.
type gate struct {
	listener net.Listener
	server   http.Server
}

// openGate listens on a port of its own and writes the kubeconfig that leads there.
func openGate(plane string) (*gate, error) {
	d, err := readDescription(plane)
	if err != nil {
		return nil, err
	}
	upstream, err := url.Parse(d.Server)
	if err != nil {
		return nil, fmt.Errorf("open gate: %w", err)
	}
	dir := filepath.Join(plane, pki)
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("open gate: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	serving, err := tls.LoadX509KeyPair(filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key"))
	if err != nil {
		return nil, fmt.Errorf("open gate: %w", err)
	}
	user, err := readPair(dir, controllerManager)
	if err != nil {
		return nil, err
	}
	identity, err := tls.X509KeyPair(user.cert, user.key)
	if err != nil {
		return nil, fmt.Errorf("open gate: %w", err)
	}
	g := &gate{server: http.Server{
		Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(upstream)
				if r.In.URL.Path == "/healthz" {
					r.Out.URL.Path = "/livez"
				}
			},
			Transport: &http.Transport{
				TLSClientConfig:   &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{identity}},
				ForceAttemptHTTP2: true,
			},
			FlushInterval: -1, // watches are told at once
			ErrorLog:      log.New(os.Stderr, "gate: ", log.LstdFlags),
		},
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{serving}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert,
			VerifyConnection: onlyUser(identity.Leaf),
		},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(os.Stderr, "gate: ", log.LstdFlags),
	}}
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("open gate: %w", err)
	}
	return g, writeKubeconfig(filepath.Join(plane, kubeconfigOf(controllerManager)), "https://"+g.listener.Addr().String(), "gate", authority, user)
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

// serve passes requests on until the gate is closed.
func (g *gate) serve() {
	if err := g.server.ServeTLS(g.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "gate:", err)
	}
}

func (g *gate) close() { _ = g.server.Close() }
