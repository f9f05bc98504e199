package restconfig_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/example/operator-lab/clusters/restconfig"
)

// A server that is lent by somebody else must not choose whom this machine asks.
func TestNoRedirectionIsFollowed(t *testing.T) {
	var asked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Store(true)
		_, _ = w.Write([]byte(`{"kind":"NamespaceList","apiVersion":"v1","items":[]}`))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()

	client := load(t, server.URL)
	if _, err := client.Discovery().ServerVersion(); err == nil || !strings.Contains(err.Error(), "redirection") || asked.Load() {
		t.Errorf("asked elsewhere: %t; %v", asked.Load(), err)
	}
}

// API servers send clients from …/proxy to …/proxy/.
func TestARedirectionToTheSameServerIsFollowed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/proxy/") {
			http.Redirect(w, r, r.URL.Path+"/", http.StatusMovedPermanently)
			return
		}
		_, _ = w.Write([]byte("hello"))
	}))
	defer server.Close()
	got, err := load(t, server.URL).CoreV1().Pods("default").ProxyGet("", "p", "80", "/", nil).DoRaw(t.Context())
	if string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A definition of 34 KB can have the API server add 100 MB of defaults to each Memcached.
func TestDefaultsWithoutEndAreNotRead(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		for range 4 << 10 {
			n, err := w.Write(bytes.Repeat([]byte(" "), 64<<10))
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	client := load(t, server.URL)
	_, err := client.CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{})
	if large, ok := errors.AsType[*http.MaxBytesError](err); !ok || sent.Load() > 128<<20 {
		t.Errorf("%d MiB were read; %v, %v", sent.Load()>>20, large, err)
	}
	sent.Store(0)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{}, metav1.CreateOptions{}) // 201
	if large, ok := errors.AsType[*http.MaxBytesError](err); !ok || sent.Load() > 128<<20 {
		t.Errorf("%d MiB were read of what was created; %v, %v", sent.Load()>>20, large, err)
	}
	sent.Store(0)
	w, err := client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range w.ResultChan() { // until it ends
	}
	if sent.Load() > 64<<20 {
		t.Errorf("%d MiB were read of one event", sent.Load()>>20)
	}
	_, err = client.CoreV1().RESTClient().Get().AbsPath("/apis/cache.example.com/v1/namespaces/n/log").DoRaw(t.Context()) // of objects with this name
	if _, ok := errors.AsType[*http.MaxBytesError](err); !ok {
		t.Errorf("a list of objects whose plural is log: %v", err)
	}
	logs, err := client.CoreV1().Pods("n").GetLogs("p", &corev1.PodLogOptions{}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	if n, err := io.Copy(io.Discard, logs); n != 256<<20 || err != nil {
		t.Errorf("%d MiB of a log, %v", n>>20, err)
	}
}

// The API server complains of each mistake in an object of somebody's, and quotes what is wrong.
func TestARefusalHasALimit(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"`))
		for range 1 << 10 {
			n, err := w.Write(bytes.Repeat([]byte("x"), 64<<10))
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	_, err := load(t, server.URL).CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{})
	server.Close() // when its answer has ended
	if !apierrors.IsInvalid(err) || len(err.Error()) > 4<<10 {
		t.Errorf("%.200v", err)
	}
	if sent.Load() > 32<<20 {
		t.Errorf("%d MiB were read", sent.Load()>>20)
	}
}

// load is a client of a kubeconfig for that server.
func load(t *testing.T, server string) *kubernetes.Clientset {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["room"] = &clientcmdapi.Cluster{Server: server}
	kubeconfig.Contexts["room"] = &clientcmdapi.Context{Cluster: "room"}
	kubeconfig.CurrentContext = "room"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		t.Fatal(err)
	}
	config, err := restconfig.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
