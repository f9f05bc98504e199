package embeddedtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/clusters"
)

// TestUntrustedAdmin is an admin who has an API server call an address of the machine that it runs on, in one way for each
// flag that is to stop it. An API server of a trusted admin does call, which shows that each way is one.
func TestUntrustedAdmin(t *testing.T) {
	m, _ := manager(t)
	address := thisMachine(t)
	for name, tc := range map[string]struct {
		spec  clusters.Spec
		calls bool
	}{
		"trusted":           {clusters.Spec{}, true},
		"untrusted":         {clusters.Spec{UntrustedAdmin: true}, false},
		"untrusted, remote": {clusters.Spec{APIServerAddress: address}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := create(t, m, tc.spec)
			a := newAdmin(t, cluster, address)
			if err := a.get(t.Context(), "/logs/"); err == nil {
				t.Error("it has the logs of its machine read") // of /var/log, as API servers once did by default
			}
			got, want := map[string]bool{}, map[string]bool{}
			for way, try := range a.ways() {
				got[way], want[way] = a.reaches(t, way, try), tc.calls
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ways by which it is called (-want +got):\n%s", diff)
			}
		})
	}
}

// volumeLimit is for how long a folder has to be there still. Where volumes are deleted it is gone within a second.
const volumeLimit = 5 * time.Second

// A controller manager is a process of the machine, too. Kubernetes deletes the folder of a released volume of the kind
// hostPath, if it lies below any /tmp.
func TestVolumeDeletesNoFolder(t *testing.T) {
	m, _ := manager(t)
	cluster := create(t, m, clusters.Spec{})
	folder, err := os.MkdirTemp("/tmp", "lab-volume-") //nolint:usetesting // it has to lie below /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	a := newAdmin(t, cluster, "")
	err = a.Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "released"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}},
			ClaimRef:                      &corev1.ObjectReference{Namespace: metav1.NamespaceDefault, Name: "gone", UID: "1-2-3"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(volumeLimit); time.Now().Before(end); <-tick.C {
		if _, err := os.Stat(folder); err != nil {
			t.Fatalf("the folder is gone: %v", err)
		}
	}
}

// admin has an API server call an address.
type admin struct {
	client.Client
	http    *http.Client
	url     string
	address string
	port    int32 // of the listener of the current way
}

func newAdmin(t *testing.T, cluster *clusters.Cluster, address string) *admin {
	t.Helper()
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // an attacker waits for nobody
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &admin{Client: c, http: h, url: config.Host, address: address}
}

// wayLimit is how long a way is tried. Those that are open take a second, as caches have to hear of the objects.
const wayLimit = 10 * time.Second

// refused are in the answers of an API server that tried to call somebody, and could not.
var refused = []string{"nobody.sock", "127.0.0.1:0: connect", "no preferred addresses found", notServed}

// byName is for Kubernetes the API server itself, and for the DNS of this machine whoever says so.
const byName = "https://kubernetes.default.svc/"

// notServed is for a resource that is a way, and is not there.
const notServed = "the API server has no componentstatuses"

// reaches says whether somebody was called. A way makes objects once, and then asks for something again and again, until
// somebody is called, or the server says that it cannot.
func (a *admin) reaches(t *testing.T, way string, try func(ctx context.Context) (ask func() error, err error)) bool {
	t.Helper()
	l, err := net.Listen("tcp", ":0") //nolint:gosec // on loopback, too
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var called atomic.Bool
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			called.Store(true)
			c.Close()
		}
	}()
	a.port = int32(l.Addr().(*net.TCPAddr).Port)
	ctx, cancel := context.WithTimeout(t.Context(), wayLimit)
	defer cancel()
	ask, err := try(ctx)
	if err != nil {
		t.Fatalf("%s: %v", way, err)
	}
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	for {
		last := ask()
		switch {
		case called.Load():
			return true
		case last != nil && slices.ContainsFunc(refused, func(text string) bool { return strings.Contains(last.Error(), text) }):
			return false
		case last != nil && strings.Contains(last.Error(), byName):
			return true // it asked the DNS
		}
		select {
		case <-ctx.Done():
			t.Errorf("%s: nobody was called, and the server does not say why: %v", way, last)
			return false
		case <-retry.C:
		}
	}
}

// get asks for a path of the API server. The error is what it answers if that is no success.
func (a *admin) get(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	if err != nil {
		return err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
}

func (a *admin) ways() map[string]func(ctx context.Context) (func() error, error) {
	return map[string]func(ctx context.Context) (func() error, error){
		"a webhook at an address": func(ctx context.Context) (func() error, error) {
			url := fmt.Sprintf("https://%s:%d/", a.address, a.port)
			return a.webhook(ctx, "by-address", admissionv1.WebhookClientConfig{URL: &url})
		},
		"a webhook at the API server's name": func(ctx context.Context) (func() error, error) {
			url := byName
			return a.webhook(ctx, "by-name", admissionv1.WebhookClientConfig{URL: &url})
		},
		"the health of its own controller manager": func(ctx context.Context) (func() error, error) {
			// The API server calls this address alone, and follows where it leads.
			l, err := net.Listen("tcp", "127.0.0.1:10257")
			if err != nil {
				return nil, err
			}
			leads := &httptest.Server{Listener: l, Config: &http.Server{
				Handler:           http.RedirectHandler(fmt.Sprintf("http://%s:%d/", a.address, a.port), http.StatusFound),
				ReadHeaderTimeout: wayLimit,
			}}
			leads.StartTLS()
			context.AfterFunc(ctx, leads.Close)
			return func() error {
				err := a.get(ctx, "/api/v1/componentstatuses/controller-manager")
				if err != nil && strings.HasPrefix(err.Error(), "404 ") {
					err = fmt.Errorf("%s: %w", notServed, err)
				}
				return err
			}, nil
		},
		"the log of a Pod": func(ctx context.Context) (func() error, error) {
			node, pod := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "logging"}}, a.pod("logging", "logging")
			return func() error {
				if err := a.setNode(ctx, node); err != nil {
					return err
				}
				return a.get(ctx, "/api/v1/namespaces/default/pods/logging/log")
			}, a.create(ctx, node, pod)
		},
	}
}

func (a *admin) create(ctx context.Context, objects ...client.Object) error {
	for _, obj := range objects {
		if err := a.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %T: %w", obj, err)
		}
	}
	return nil
}

func (a *admin) pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "none.test/none"}}},
	}
}

// setNode has the node answer at the address. kwok, which plays nodes, may have said something else.
func (a *admin) setNode(ctx context.Context, node *corev1.Node) error {
	if err := a.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return err
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: a.address}, {Type: corev1.NodeInternalIP, Address: a.address}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = a.port
	return a.Status().Update(ctx, node)
}

// webhook is asked about ConfigMaps.
func (a *admin) webhook(ctx context.Context, name string, at admissionv1.WebhookClientConfig) (func() error, error) {
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	hook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: name + ".egress.test", ClientConfig: at, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ask": name}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	return func() error {
		return a.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, GenerateName: "egress-", Labels: map[string]string{"ask": name},
		}}, client.DryRunAll)
	}, a.create(ctx, hook)
}

// thisMachine is an address of this machine that is not loopback.
func thisMachine(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no address but loopback")
	return ""
}
