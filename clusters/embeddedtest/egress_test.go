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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/clusters"
)

// TestTheAPIServerOfAStrangerIsNoWayIn is an admin who has an API server call an address of the machine that it runs on,
// in all ways that we know. A server that only its own machine reaches does, which shows that each way is one.
func TestTheAPIServerOfAStrangerIsNoWayIn(t *testing.T) {
	e, _ := newProvider(t)
	address := thisMachine(t)
	for name, tc := range map[string]struct {
		spec  clusters.Spec
		calls bool
	}{
		"whoever runs it is its admin":      {clusters.Spec{}, true},
		"a stranger is its admin":           {clusters.Spec{ForOthers: true}, false},
		"a stranger elsewhere is its admin": {clusters.Spec{APIServerAddress: address}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, err := e.Create(t.Context(), clusters.NewName("egress"), tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := e.Delete(context.WithoutCancel(t.Context()), cluster.Name); err != nil {
					t.Error(err)
				}
			})
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
func TestNoVolumeDeletesAFolderOfTheMachine(t *testing.T) {
	e, _ := newProvider(t)
	cluster, err := e.Create(t.Context(), clusters.NewName("volume"), clusters.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Delete(context.WithoutCancel(t.Context()), cluster.Name); err != nil {
			t.Error(err)
		}
	})
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
	config, err := clusters.RESTConfig(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // an attacker waits for nobody
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrades
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
func (a *admin) get(ctx context.Context, path string) error { return a.upgrade(ctx, path, "") }

// upgrade asks for a connection with that protocol there, if it is not "".
func (a *admin) upgrade(ctx context.Context, path, protocol string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	if err != nil {
		return err
	}
	if protocol != "" {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", protocol)
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
		"a webhook of a Service": func(ctx context.Context) (func() error, error) {
			return a.webhook(ctx, "by-service", admissionv1.WebhookClientConfig{
				Service: &admissionv1.ServiceReference{Namespace: metav1.NamespaceDefault, Name: "webhook", Port: &a.port},
			}, a.elsewhere("webhook"))
		},
		"a webhook at the API server's name": func(ctx context.Context) (func() error, error) {
			url := byName
			return a.webhook(ctx, "by-name", admissionv1.WebhookClientConfig{URL: &url})
		},
		"a conversion webhook": func(ctx context.Context) (func() error, error) {
			return a.conversion(ctx, "by-address", fmt.Sprintf("https://%s:%d/", a.address, a.port))
		},
		// No proxy of the environment is asked for these two: the egress alone stops them.
		"a webhook at loopback": func(ctx context.Context) (func() error, error) {
			url := fmt.Sprintf("https://127.0.0.1:%d/", a.port)
			return a.webhook(ctx, "by-loopback", admissionv1.WebhookClientConfig{URL: &url})
		},
		"a conversion webhook at loopback": func(ctx context.Context) (func() error, error) {
			return a.conversion(ctx, "by-loopback", fmt.Sprintf("https://127.0.0.1:%d/", a.port))
		},
		"a conversion webhook at the API server's name": func(ctx context.Context) (func() error, error) {
			return a.conversion(ctx, "by-name", byName)
		},
		"an API server beside it": func(ctx context.Context) (func() error, error) {
			service := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.egress.test"},
				"spec": map[string]any{
					"group": "egress.test", "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1),
					"insecureSkipTLSVerify": true,
					"service":               map[string]any{"namespace": metav1.NamespaceDefault, "name": "aggregated", "port": int64(a.port)},
				},
			}}
			return func() error {
				// Whether it can be reached stands in its status; it is asked for nothing before that is true.
				if err := a.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
					return err
				}
				return fmt.Errorf("%v", service.Object["status"])
			}, a.create(ctx, a.elsewhere("aggregated"), service)
		},
		"the proxy to a Service": func(ctx context.Context) (func() error, error) {
			service := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "proxied"},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "p", Port: a.port}}},
			}
			endpoints := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Endpoints", "metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": "proxied"},
				"subsets": []any{map[string]any{
					"addresses": []any{map[string]any{
						"ip": a.address, "targetRef": map[string]any{"kind": "Pod", "namespace": metav1.NamespaceDefault, "name": "behind"},
					}},
					"ports": []any{map[string]any{"name": "p", "port": int64(a.port)}},
				}},
			}}
			pod := a.pod("behind", "nowhere") // Services lead to Pods alone
			return func() error {
				if err := a.setPod(ctx, pod); err != nil {
					return err
				}
				return a.get(ctx, "/api/v1/namespaces/default/services/http:proxied:p/proxy/")
			}, a.create(ctx, service, pod, endpoints)
		},
		"the proxy to a node": func(ctx context.Context) (func() error, error) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here"}}
			return func() error {
				if err := a.setNode(ctx, node); err != nil {
					return err
				}
				return a.get(ctx, fmt.Sprintf("/api/v1/nodes/http:here:%d/proxy/", a.port))
			}, a.create(ctx, node)
		},
		"the proxy to a Pod":                 func(ctx context.Context) (func() error, error) { return a.podProxy(ctx, "proxied", "") },
		"a connection by the proxy to a Pod": func(ctx context.Context) (func() error, error) { return a.podProxy(ctx, "connected", "websocket") },
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

// elsewhere is a Service that stands for the address.
func (a *admin) elsewhere(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: a.address, Ports: []corev1.ServicePort{{Port: a.port}},
		},
	}
}

func (a *admin) pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "none.test/none"}}},
	}
}

// podProxy asks for a Pod, or for a connection with that protocol to it.
func (a *admin) podProxy(ctx context.Context, name, protocol string) (func() error, error) {
	pod := a.pod(name, "nowhere")
	return func() error {
		if err := a.setPod(ctx, pod); err != nil {
			return err
		}
		return a.upgrade(ctx, fmt.Sprintf("/api/v1/namespaces/default/pods/http:%s:%d/proxy/", name, a.port), protocol)
	}, a.create(ctx, pod)
}

// setPod has the Pod be at the address.
func (a *admin) setPod(ctx context.Context, pod *corev1.Pod) error {
	pod.Status.PodIP, pod.Status.PodIPs = a.address, []corev1.PodIP{{IP: a.address}}
	return a.Status().Update(ctx, pod)
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
func (a *admin) webhook(ctx context.Context, name string, at admissionv1.WebhookClientConfig, before ...client.Object) (func() error, error) {
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
	}, a.create(ctx, append(before, hook)...)
}

// conversion has the objects of a definition converted.
func (a *admin) conversion(ctx context.Context, name, url string) (func() error, error) {
	group := name + ".convert.test"
	keep := true
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: schema}, {Name: "v2", Served: true, Schema: schema},
			},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url}, ConversionReviewVersions: []string{"v1"},
				},
			},
		},
	}
	thing := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "thing"},
	}}
	return func() error {
		_ = a.Create(ctx, thing.DeepCopy()) // once the definition is served
		return a.get(ctx, "/apis/"+group+"/v2/things/thing")
	}, a.create(ctx, definition)
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
