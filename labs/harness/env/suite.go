// Package env is what a check works with: the cluster and its namespaces, the learner's manager behind its proxy, the objects
// that the check creates, and the result that is reported.
package env

import (
	"bytes"
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
// state is package-level, too. It is set before the first check; after that, only check changes.
var current struct {
	config      suite.Config
	admin       client.WithWatch
	adminConfig *rest.Config
	clientset   kubernetes.Interface // with the rights of admin
	shared      shared
	deployed    deployed
	env         *testEnv // nil when no lab of the run judges a manager, and when there is none that works
	trace       *trace.Watcher
	warnings    bytes.Buffer // of the API server, a line for each
	check       atomic.Pointer[check]
}

// shared is what process 1 prepares for all others.
type shared struct {
	// Run is a random id of this run of the suite.
	Run string `json:"run"`
	// CRD says why the learner's manifest is not installed, nil when it is.
	CRD *finding.Finding `json:"crd,omitempty"`
	// Gone says why the manager of process 1 did not work, nil when it did. The other processes then start none.
	Gone *finding.Finding `json:"gone,omitempty"`
}

// testEnv is what a Ginkgo process has for itself: a process of the learner's manager, and the proxy in front of it.
// A check may restart this manager and disturb this proxy without an effect on the checks of other processes.
type testEnv struct {
	proxy    *apiproxy.Proxy
	manager  *ManagerProcess
	registry *registry.Registry // nil when no lab of the run needs it
}

// SetUp prepares the cluster once, on the first Ginkgo process: it installs the learner's CRD, and starts the manager of
// that process behind its proxy. A mistake of the learner's becomes a finding that the checks report;
// an error is never the learner's fault.
func SetUp(ctx context.Context) (prepared []byte, err error) {
	defer func() { appendDefect(err) }()
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
		// The checks' client names no field manager. For its writes, the API server records the name of the program.
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

// appendDefect adds an error of the suite itself to the results of the run.
func appendDefect(err error) {
	if err != nil {
		appendResult(suite.Result{State: suite.Broken, Defect: err.Error()})
	}
}

// Join gives every Ginkgo process what [SetUp] prepared, and a manager of its own. If this manager cannot run beside those of the
// other processes, the run ends: see [suite.Restart].
func Join(ctx context.Context, prepared []byte) (err error) {
	defer func() { appendDefect(err) }()
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
		return nil // the checks report that the manager is gone
	}
	if current.env == nil {
		if err := openTestEnv(ctx); err != nil {
			return err
		}
	}
	// The manager has ended, most likely because another one has its port; or it asks for a lease that another one holds.
	alone := current.env.manager.gone() != nil || slices.ContainsFunc(requests(0), asksForLease)
	if c, _ := ginkgo.GinkgoConfiguration(); c.ParallelTotal > 1 && alone {
		appendResult(suite.Result{State: suite.Restart})
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

// TearDown ends the trace of the run, on the first process, when all others have left. If the cluster stays, it tries to remove
// the finalizers of Memcacheds that are being deleted: the managers that would remove them have ended.
func TearDown(ctx context.Context) {
	current.trace.Close()
	if !current.config.NeedsManager() || current.config.Disposable {
		return
	}
	undeploy(ctx)
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
	rc.WarningHandler = rest.NewWarningWriter(&current.warnings, rest.WarningWriterOptions{})
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

// openTestEnv starts the proxy, the registry if a lab of the run needs one, and the manager: see [ManagerProcess.start].
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

// restore restarts the manager unless it is as a check of lab n expects it: started, with the run's image, and with the registry
// and the webhooks if that lab has them. A manager that has ended by itself is not started again: the checks report it.
func (e *testEnv) restore(ctx context.Context, n int) error {
	wanted := settings{webhooks: slices.Contains(current.config.Webhooks, n)}
	if slices.Contains(current.config.Registry, n) {
		wanted.registry = e.registry
	}
	if r := e.manager.run.Load(); r != nil && r.image == current.config.MemcachedImage && e.manager.settings == wanted {
		return nil
	}
	e.manager.settings = wanted
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

// note adds an event of the manager's process to the trace of the running check.
func note(actor, text string) {
	if namespaces := running().ownNamespaces(); len(namespaces) > 0 {
		current.trace.Note(namespaces[0], actor, text)
	}
}

// Admin is a client with all rights. Its scheme has the built-in types and CustomResourceDefinition. Use unstructured
// objects for everything else.
func Admin() client.WithWatch { return current.admin }

// Warnings are what the API server has warned of in its answers to the checks of this process. No request of a check may run meanwhile.
func Warnings() string { return current.warnings.String() }

// Manager is the learner's manager. No other check uses it meanwhile. Manager fails the check if this run has none.
func Manager() *ManagerProcess {
	ginkgo.GinkgoHelper()
	_, err := Proxy()
	require(err)
	return current.env.manager
}

// Registry is the registry whose address the learner's manager gets in the labs that have one. No other check uses it meanwhile.
// Registry fails the check if this run has no manager.
func Registry() *registry.Registry {
	ginkgo.GinkgoHelper()
	Manager()
	return current.env.registry
}

// Proxy is the proxy in front of the learner's manager. No other check uses it meanwhile.
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
		roles, _ = suite.ReadRoles(current.config.Workspace) // a check reports a role that is missing or invalid
		for i, role := range roles {
			// Not its own name: a role named like one of Kubernetes' own would get the rights of that one.
			role.Name = fmt.Sprintf("lab-%s-%d", current.shared.Run, i)
		}
	}
	for _, role := range roles {
		// A check reports a role that the API server refuses, too.
		if err := grant(ctx, role); err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return err
		}
	}
	return nil
}

// grant creates a role and binds the account to it. A role without a namespace becomes a ClusterRole.
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

// requestToken asks for a token of the manager's account.
func requestToken(ctx context.Context) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	err := current.admin.SubResource("token").Create(ctx, account(), request)
	return request.Status.Token, err
}

// account is the ServiceAccount of the manager. Under a role it is another one than with all rights: a cluster may be used again,
// and bindings stay.
func account() *corev1.ServiceAccount {
	name := "manager"
	if current.config.UnderRole {
		name = "manager-under-role"
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name}}
}

// managerUser is the user name of the manager at the API server.
func managerUser() string { return "system:serviceaccount:" + systemNamespace + ":" + account().Name }
