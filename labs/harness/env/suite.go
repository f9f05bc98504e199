// Package env is what a check works with: the cluster and its namespaces, the learner's manager with the proxy in front of
// it, the objects that the check makes, and what stands in the report when it fails.
package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/onsi/ginkgo/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/loopback"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/trace"
)

// current is the state of this Ginkgo process. Ginkgo's nodes are package-level functions, so their
// state has to be as well; it is set once, before the first check.
var current struct {
	config      suite.Config
	admin       client.WithWatch
	adminConfig *rest.Config
	clientset   kubernetes.Interface // of the administrator, too
	shared      shared
	env         *testEnv // nil when no lab of the run judges a manager, and when there is none that works
	trace       *trace.Watcher
	check       atomic.Pointer[check]
}

// shared is what process 1 prepares for all others.
type shared struct {
	// Run is drawn anew for each run of the suite.
	Run string `json:"run"`
	// CRD is the finding about the learner's manifest, nil when it is installed.
	CRD *finding.Finding `json:"crd,omitempty"`
	// Gone is the finding about a manager that did not get as far as its checks; no other process starts one then.
	Gone *finding.Finding `json:"gone,omitempty"`
}

// testEnv is what a Ginkgo process has for itself: a process of the learner's manager, and the proxy that it goes through.
// A check may stop and restart it, and disturb the proxy; the checks of other processes do not notice.
type testEnv struct {
	proxy    *apiproxy.Proxy
	manager  *ManagerProcess
	registry *registry.Registry // nil when no lab of the run needs it
}

// SetUp prepares the cluster once, on the first Ginkgo process: the learner's CRD, and the manager of that process
// behind its recording proxy. What is wrong with the learner's part of it becomes a finding that the
// checks report; an error here is never the learner's fault.
func SetUp(ctx context.Context) (prepared []byte, err error) {
	defer func() { told(err) }()
	current.shared.Run = utilrand.String(10)
	if err := connect(); err != nil {
		return nil, err
	}
	if current.config.Definition {
		if _, err := installDefinition(ctx); err != nil {
			current.shared.CRD = finding.Of(err)
		}
	}
	if current.config.NeedsManager() {
		// The API server keeps the name of the program for what a client without a name of its own writes.
		current.trace = trace.Watch(ctx, current.admin, filepath.Join(current.config.Artifacts, trace.File), gvk, filepath.Base(os.Args[0]))
		if current.shared.CRD == nil {
			awaitDiscovery(ctx)
		}
		if err := createAccount(ctx); err != nil {
			return nil, err
		}
		if err := openTestEnv(ctx); err != nil {
			return nil, err
		}
		current.shared.Gone = current.env.manager.gone()
	}
	return json.Marshal(current.shared)
}

// told adds an error to the results of the run.
func told(err error) {
	if err != nil {
		tell(suite.Result{State: suite.Broken, Defect: err.Error()})
	}
}

// Join gives every Ginkgo process what [SetUp] prepared, and a manager of its own. Where that one cannot run beside the
// others' the run ends: see [suite.Restart].
func Join(ctx context.Context, prepared []byte) (err error) {
	defer func() { told(err) }()
	if current.admin == nil {
		if err := connect(); err != nil {
			return err
		}
		current.trace = trace.Join(filepath.Join(current.config.Artifacts, trace.File))
	}
	if err := json.Unmarshal(prepared, &current.shared); err != nil {
		return fmt.Errorf("read what the first process prepared: %w", err)
	}
	if !current.config.NeedsManager() || current.shared.Gone != nil {
		return nil // that the manager is gone, the checks say
	}
	if current.env == nil {
		if err := openTestEnv(ctx); err != nil {
			return err
		}
	}
	// It ended, most likely over a port that the others want, too, or it asks for a lease that another one holds.
	if c, _ := ginkgo.GinkgoConfiguration(); c.ParallelTotal > 1 && (current.env.manager.gone() != nil || slices.ContainsFunc(requests(0), asksForLease)) {
		tell(suite.Result{State: suite.Restart})
		ginkgo.AbortSuite("the manager cannot run several times on one machine")
	}
	return nil
}

// Leave ends the manager and the proxy of a Ginkgo process that has no more checks.
func Leave(ctx context.Context) {
	if current.env != nil {
		current.env.close(ctx)
	}
}

// TearDown ends the recording of the run, on the first process, when all others have left. If the cluster stays, it takes the
// finalizers away from Memcacheds that are being deleted, as far as it can: the managers that would are gone.
func TearDown(ctx context.Context) {
	current.trace.Close()
	if !current.config.NeedsManager() || current.config.Disposable {
		return
	}
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(gvk)
	_ = current.admin.List(ctx, all)
	for _, left := range all.Items {
		if left.GetDeletionTimestamp() != nil && strings.HasPrefix(left.GetNamespace(), checkNamespace) {
			_ = current.admin.Patch(ctx, &left, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		}
	}
}

func connect() error {
	config, err := suite.ReadConfig()
	if err != nil {
		return err
	}
	current.config = config
	rc, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return err
	}
	rc.QPS, rc.Burst = -1, -1 // many checks share this client; the API server has its own limits
	current.adminConfig = rc
	if current.clientset, err = kubernetes.NewForConfig(rc); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	current.admin, err = client.NewWithWatch(rc, client.Options{Scheme: scheme})
	return err
}

// openTestEnv starts the proxy, and the manager with its identity, and returns when the manager knows what there is.
func openTestEnv(ctx context.Context) error {
	token, err := requestToken(ctx)
	if err != nil {
		return err
	}
	ginkgoConfig, _ := ginkgo.GinkgoConfiguration()
	hidden := hiddenFrom(ginkgo.GinkgoParallelProcess(), ginkgoConfig.ParallelTotal, current.shared.Run, current.config.Checks)
	proxy, err := apiproxy.Start(current.adminConfig, apiproxy.NamespaceFilter{Hidden: hidden, Namespaced: namespaced})
	if err != nil {
		return err
	}
	e := &testEnv{proxy: proxy}
	if len(current.config.Registry) > 0 {
		var addresses []string
		if addresses, err = loopback.Free(1); err == nil {
			e.registry, err = registry.Start(addresses[0], nil)
		}
	}
	if err == nil {
		e.manager, err = newManager(proxy, token)
	}
	if err == nil {
		err = e.manager.start(ctx, current.config.MemcachedImage)
	}
	if err != nil {
		e.close(ctx)
		return err
	}
	current.env = e
	return nil
}

// restore brings back the manager as a check of lab n expects it, whatever the check before has left: running, with the
// run's image, and told of the registry if that lab has one. One that ended by itself stays away: the checks say so.
func (e *testEnv) restore(ctx context.Context, n int) error {
	var wanted *registry.Registry
	if slices.Contains(current.config.Registry, n) {
		wanted = e.registry
	}
	if r := e.manager.run.Load(); r != nil && r.image == current.config.MemcachedImage && e.manager.registry == wanted {
		return nil
	}
	e.manager.registry = wanted
	return e.manager.Restart(ctx, current.config.MemcachedImage)
}

// close ends the manager and the proxy, and adds what the manager sent to the trace.
func (e *testEnv) close(ctx context.Context) {
	if e.manager != nil {
		e.manager.stop(ctx)
		e.manager.output.Close()
	}
	e.proxy.Stop()
	if e.registry != nil {
		_ = e.registry.Close()
	}
	current.trace.Add(e.proxy.Since(0))
}

// note adds what happened to the manager to the trace of the running check.
func note(actor, text string) {
	if namespaces := running().ownNamespaces(); len(namespaces) > 0 {
		current.trace.Note(namespaces[0], actor, text)
	}
}

// Admin is a client with all rights. It knows the built-in types and CustomResourceDefinition; send
// everything else unstructured.
func Admin() client.WithWatch { return current.admin }

// Manager is the learner's manager, which the running check has for itself. It fails the check when there is none.
func Manager() *ManagerProcess {
	ginkgo.GinkgoHelper()
	_, err := Proxy()
	require(err)
	return current.env.manager
}

// Registry is the one that the learner's manager is told of from lab 10 on, which the running check has for itself. It fails
// the check when there is none.
func Registry() *registry.Registry {
	ginkgo.GinkgoHelper()
	Manager()
	return current.env.registry
}

// Proxy is the proxy that the learner's manager goes through, which the running check has for itself.
func Proxy() (*apiproxy.Proxy, error) {
	if current.env == nil {
		return nil, errors.New("this run has no manager")
	}
	return current.env.proxy, nil
}

const (
	systemNamespace = "lab-system"
	tokenSeconds    = 2 * 60 * 60 // longer than any run
)

// createAccount makes the ServiceAccount that the manager works as, and binds it to cluster-admin, or to exactly what the
// generated role says.
func createAccount(ctx context.Context) error {
	if err := ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}, account()); err != nil {
		return err
	}
	roles := []*rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"}}} // every cluster has it
	if current.config.UnderRole {
		roles, _ = suite.ReadRoles(current.config.Workspace) // a missing or damaged role is the learner's; the checks of lab 7 report it
		for i, role := range roles {
			// Not its own name: a role that is called like one of Kubernetes' would get that one's rights.
			role.Name = fmt.Sprintf("lab-%s-%d", current.shared.Run, i)
		}
	}
	for _, role := range roles {
		// One that the API server does not take is the learner's, too.
		if err := grant(ctx, role); err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return err
		}
	}
	return nil
}

// grant creates a role, which is a ClusterRole if it has no namespace, and binds the account to it.
func grant(ctx context.Context, role *rbacv1.Role) error {
	meta := metav1.ObjectMeta{Name: account().Name + "-" + role.Name, Namespace: role.Namespace}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: account().Name}}
	if role.Namespace == "" {
		ref.Kind = "ClusterRole"
		return ensure(ctx, &rbacv1.ClusterRole{ObjectMeta: role.ObjectMeta, Rules: role.Rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
	}
	return ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: role.Namespace}}, role,
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
}

func ensure(ctx context.Context, objects ...client.Object) error {
	for _, obj := range objects {
		if err := current.admin.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

// requestToken asks for a token of that account.
func requestToken(ctx context.Context) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	err := current.admin.SubResource("token").Create(ctx, account(), request)
	return request.Status.Token, err
}

// account is what the manager works as. The one under a role is another than the one with all rights, as a cluster may be used again.
func account() *corev1.ServiceAccount {
	name := "manager"
	if current.config.UnderRole {
		name = "manager-under-role"
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name}}
}

// managerUser is the name under which the API server knows the manager.
func managerUser() string { return "system:serviceaccount:" + systemNamespace + ":" + account().Name }
