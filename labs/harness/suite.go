package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/trace"
)

// suite is the state of this Ginkgo process. Ginkgo's nodes are package-level functions, so their
// state has to be as well; it is set once, before the first check.
var suite struct {
	config      Config
	admin       client.WithWatch
	adminConfig *rest.Config
	shared      shared
	env         *testEnv       // nil when no lab of the run judges a manager, and when there is none that works
	trace       *trace.Watcher // process 1 only
	progress    *progress      // nil when no lab of the run judges a manager
	place       place          // where the running check works

	randOf string // the check that rand belongs to
	rand   *rand.Rand
}

// shared is what process 1 prepares for all others.
type shared struct {
	// Run is drawn anew for each run of the suite.
	Run string `json:"run"`
	// CRD is the finding about the learner's manifest, nil when it is installed.
	CRD *finding.Finding `json:"crd,omitempty"`
	// Gone is the finding about a manager that did not get as far as its checks; no other process starts one then.
	Gone *finding.Finding `json:"gone,omitempty"`
	// Token is the manager's identity.
	Token string `json:"token,omitempty"`
	// Program is what the manager's program said about itself.
	Program program `json:"program,omitzero"`
}

// SetUp prepares the cluster once, on the first Ginkgo process: the learner's CRD, and the manager of that process
// behind its recording proxy. What is wrong with the learner's part of it becomes a finding that the
// checks report; an error here is never the learner's fault.
func SetUp(ctx context.Context) ([]byte, error) {
	if err := connect(); err != nil {
		return nil, err
	}
	suite.shared.Run = utilrand.String(10)
	if suite.config.NeedsCRD() {
		suite.shared.CRD = installLearnersCRD(ctx)
	}
	suite.trace = beginTrace(ctx)
	if suite.config.NeedsManager() {
		if err := startManager(ctx); err != nil {
			return nil, err
		}
	}
	return json.Marshal(suite.shared)
}

// startManager starts the manager of the first process. A program that does not work is not started by others, too.
func startManager(ctx context.Context) (err error) {
	if suite.shared.CRD == nil {
		awaitDiscovery(ctx)
	}
	if err := restrictPods(ctx); err != nil {
		return err
	}
	if suite.shared.Token, err = identity(ctx); err != nil {
		return err
	}
	if suite.env, err = openTestEnv(ctx, suite.trace, nil); err != nil {
		return err
	}
	suite.shared.Program, suite.shared.Gone = suite.env.manager.program, suite.env.gone()
	return nil
}

// Join gives every Ginkgo process what [SetUp] prepared, and a manager of its own. Where that one cannot run beside the
// others' the run ends: see [RunsOnlyOnce].
func Join(ctx context.Context, prepared []byte) (err error) {
	if suite.admin == nil {
		if err := connect(); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(prepared, &suite.shared); err != nil {
		return fmt.Errorf("read what the first process prepared: %w", err)
	}
	if !suite.config.NeedsManager() {
		return nil
	}
	suite.progress = newProgress(suite.config.Artifacts)
	switch {
	case suite.shared.Gone != nil:
		return nil
	case suite.env != nil: // the first process: that others start their managers does not end this one
	default:
		w := trace.Join(filepath.Join(suite.config.Artifacts, trace.File))
		if suite.env, err = openTestEnv(ctx, w, &suite.shared.Program); err != nil {
			return err
		}
	}
	if processes() > 1 && suite.env.conflicts(Requests(0)) {
		return giveUp()
	}
	return nil
}

// Leave ends the manager and the proxy of a Ginkgo process that has no more checks.
func Leave(ctx context.Context) error {
	if suite.env == nil {
		return nil
	}
	err := suite.env.close(ctx)
	if suite.trace == nil {
		suite.env.trace.Close()
	}
	return err
}

// TearDown ends the recording of the run, on the first process, when all others have left.
func TearDown() { suite.trace.Close() }

func connect() error {
	config, err := readConfig()
	if err != nil {
		return err
	}
	suite.config = config
	rc, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	rc.QPS, rc.Burst = -1, -1 // many checks share this client; the API server has its own limits
	suite.adminConfig = rc
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	suite.admin, err = client.NewWithWatch(rc, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	return nil
}

// Admin is a client with all rights. It knows the built-in types and CustomResourceDefinition; send
// everything else unstructured.
func Admin() client.WithWatch { return suite.admin }

// AdminConfig is the configuration behind [Admin], for requests that need other clients.
func AdminConfig() *rest.Config { return rest.CopyConfig(suite.adminConfig) }

// LearnersCRD is nil when the workspace's own manifest is installed and Established, and otherwise a
// finding with the cause [CauseNoManifest] or [CauseRefused].
func LearnersCRD() error {
	if suite.shared.CRD == nil {
		return nil
	}
	return suite.shared.CRD
}

// Namespace makes a namespace for the running check. When the check ends, its Memcacheds are deleted, so that the manager is
// at work for the next check alone. The rest is left alone if the cluster is to be deleted
// as a whole and the Pods take no place from others: to end a Pod takes the machine half a second, and to empty a
// namespace the API server about seventy requests; those that matter now wait behind them. Otherwise all of it is deleted.
// What cannot be deleted stays until the cluster goes.
func Namespace(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	return newNamespace(ctx, reserves)
}

// reserves says whether a Pod in the namespace keeps a part of the node from the Pods of other checks, or may do so.
func reserves(ctx context.Context, namespace string) bool {
	var list appsv1.DeploymentList
	if err := suite.admin.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return true
	}
	return slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool {
		pod := d.Spec.Template.Spec
		return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
			return len(c.Resources.Requests)+len(c.Resources.Limits) > 0
		})
	})
}

// newNamespace makes one that is deleted when the check ends. Of a cluster that is to be deleted as a whole, only the
// Memcacheds are deleted, and the Deployments if they burden others.
func newNamespace(ctx context.Context, burdens func(ctx context.Context, namespace string) bool) string {
	ginkgo.GinkgoHelper()
	name, err := suite.place.add(ID(), func(n int) string {
		return namespaceName(suite.shared.Run, ginkgo.GinkgoParallelProcess(), ID(), n)
	})
	Require(err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := suite.admin.Create(ctx, ns); err != nil {
		Require(fmt.Errorf("create namespace: %w", err))
	}
	ginkgo.DeferCleanup(func(ctx context.Context) {
		if suite.env != nil {
			suite.env.trace.End(name)
		}
		// Not a NodeTimeout: that a slow machine does not come to it is no fault of the learner's.
		ctx, cancel := context.WithTimeout(ctx, StopBudget)
		defer cancel()
		var kinds []client.Object
		if suite.config.NeedsManager() {
			kinds = append(kinds, Memcached{}.object())
		}
		if !suite.config.Disposable || burdens(ctx, name) {
			kinds = append(kinds, &appsv1.Deployment{}) // the namespace takes them along, but not at once
		}
		for _, kind := range kinds {
			_ = suite.admin.DeleteAllOf(ctx, kind, client.InNamespace(name), client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
		if !suite.config.Disposable {
			_ = suite.admin.Delete(ctx, ns)
		}
	})
	return name
}
