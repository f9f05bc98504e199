package embedded

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/clusters"
)

// upstream plays an API server that has to be asked three times until it is healthy.
type upstream struct {
	asked   atomic.Int32
	exclude []string
	users   []string
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.users = append(u.users, r.TLS.PeerCertificates[0].Subject.CommonName)
	if r.URL.Path != "/healthz" {
		_, _ = w.Write([]byte(r.URL.RequestURI()))
		return
	}
	u.exclude = r.URL.Query()["exclude"]
	if u.asked.Add(1) < 3 {
		http.Error(w, "a hook is at work", http.StatusInternalServerError)
	}
}

// opened is a control plane's folder with an open proxy, and the upstream behind it.
func opened(t *testing.T) (plane string, u *upstream) {
	t.Helper()
	plane, u = t.TempDir(), &upstream{}
	ca, err := newAuthority(filepath.Join(plane, pki))
	if err != nil {
		t.Fatal(err)
	}
	serving, err := ca.server([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]pair{"apiserver": serving, controllerManager: client(t, ca, controllerManager), scheduler: client(t, ca, scheduler)} {
		if err := ca.write(name, p); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := tls.X509KeyPair(serving.cert, serving.key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(u)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	if err := writeDescription(plane, description{Nodes: 1, Server: server.URL}); err != nil {
		t.Fatal(err)
	}
	g, err := openHealthProxy(plane)
	if err != nil {
		t.Fatal(err)
	}
	go g.serve()
	t.Cleanup(g.close)
	return plane, u
}

func client(t *testing.T, ca *authority, user string) pair {
	t.Helper()
	p, err := ca.client(user)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// through is a client with the kubeconfig that the proxy wrote.
func through(t *testing.T, plane string) *rest.Config {
	t.Helper()
	config, err := clusters.RESTConfig(filepath.Join(plane, kubeconfigOf(controllerManager)))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func ask(t *testing.T, config *rest.Config, path, query string) (string, error) {
	t.Helper()
	c := kubernetes.NewForConfigOrDie(config)
	request := c.RESTClient().Get().AbsPath(path).MaxRetries(0)
	if query != "" {
		request = request.Param(query, "1")
	}
	answer, err := request.DoRaw(t.Context())
	return string(answer), err
}

func TestTheHealthProxyHoldsTheQuestionForHealthUntilItIsAYes(t *testing.T) {
	plane, u := opened(t)
	if answer, err := ask(t, through(t, plane), "/healthz", ""); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	if got := u.asked.Load(); got < 3 {
		t.Errorf("asked %d times, want at least 3", got)
	}
	if want := slowHooks["exclude"]; !slices.Equal(u.exclude, want) {
		t.Errorf("left out %v, want %v", u.exclude, want)
	}
}

func TestTheHealthProxyPassesOnEverythingElse(t *testing.T) {
	plane, u := opened(t)
	answer, err := ask(t, through(t, plane), "/api/v1/nodes", "watch")
	if err != nil || answer != "/api/v1/nodes?watch=1" {
		t.Errorf("answer %q, %v, want the request as it was sent", answer, err)
	}
	if !slices.Equal(u.users, []string{controllerManager}) {
		t.Errorf("asked by %v, want the controller manager", u.users)
	}
}

func TestNobodyElseGetsThroughTheGate(t *testing.T) {
	plane, u := opened(t)
	stranger, err := readPair(filepath.Join(plane, pki), scheduler)
	if err != nil {
		t.Fatal(err)
	}
	config := through(t, plane)
	config.CertData, config.KeyData = stranger.cert, stranger.key
	if answer, err := ask(t, config, "/api/v1/nodes", ""); err == nil {
		t.Errorf("answer %q to another of our own users, want none", answer)
	}
	config.CertData, config.KeyData = nil, nil
	if answer, err := ask(t, config, "/api/v1/nodes", ""); err == nil {
		t.Errorf("answer %q to nobody in particular, want none", answer)
	}
	if len(u.users) > 0 {
		t.Errorf("the API server was asked by %v", u.users)
	}
}

func TestKeysAreForTheirOwnerAlone(t *testing.T) {
	plane, _ := opened(t)
	err := filepath.WalkDir(plane, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
