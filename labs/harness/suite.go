package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	arena       *arena
	stage       *stage         // process 1 only
	trace       *trace.Watcher // process 1 only
	apart       *stage         // of the running check, nil when it works with all others
	place       place          // where the running check works

	randOf string // the check that rand belongs to
	rand   *rand.Rand
}

// shared is what process 1 prepares for all others.
type shared struct {
	// CRD is the finding about the learner's manifest, nil when it is installed.
	CRD *finding.Finding `json:"crd,omitempty"`
	// Arena is where the manager can be asked about; its URL is "" when no manager runs.
	Arena endpoint `json:"arena"`
	// Token is the manager's identity.
	Token string `json:"token,omitempty"`
	// Program is what the manager's program said about itself.
	Program program `json:"program,omitzero"`
	// Reserved are the namespaces of the checks that are [Apart].
	Reserved map[string]string `json:"reserved,omitempty"`
}

// SetUp prepares the cluster once, on the first Ginkgo process: the learner's CRD, and their manager
// behind the recording proxy. What is wrong with the learner's part of it becomes a finding that the
// checks report; an error here is never the learner's fault.
func SetUp(ctx context.Context) ([]byte, error) {
	if err := connect(); err != nil {
		return nil, err
	}
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

// startManager opens the stage of all checks that are not [Apart].
func startManager(ctx context.Context) (err error) {
	if suite.shared.CRD == nil {
		awaitDiscovery(ctx)
	}
	suite.shared.Reserved = reserve(suite.config)
	if c, _ := ginkgo.GinkgoConfiguration(); c.ParallelTotal > 1 && len(suite.shared.Reserved) >= c.ParallelTotal {
		return fmt.Errorf("%d checks are apart and %d processes run them: none is left for those that they may have to wait for",
			len(suite.shared.Reserved), c.ParallelTotal)
	}
	if err := fenceIn(ctx); err != nil {
		return err
	}
	if suite.shared.Token, err = identity(ctx); err != nil {
		return err
	}
	if suite.stage, err = openStage(ctx, "", suite.trace, ManagerLog, nil); err != nil {
		return err
	}
	suite.shared.Arena, suite.shared.Program = suite.stage.endpoint(), suite.stage.manager.program
	return nil
}

// Join gives every Ginkgo process what [SetUp] prepared.
func Join(_ context.Context, prepared []byte) error {
	if suite.admin == nil {
		if err := connect(); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(prepared, &suite.shared); err != nil {
		return fmt.Errorf("read what the first process prepared: %w", err)
	}
	if suite.shared.Arena.URL != "" {
		suite.arena = newArena(suite.shared.Arena)
	}
	return nil
}

// TearDown ends the manager and the proxy, on the first Ginkgo process.
func TearDown(ctx context.Context) error {
	if suite.stage == nil {
		suite.trace.Close(nil, nil)
		return nil
	}
	defer suite.stage.endTrace()
	return suite.stage.close(ctx)
}

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

// checkNamespace begins the names of the namespaces that checks work in.
const checkNamespace = trace.NamespacePrefix

// Namespace makes a namespace for the running check. When the check ends it is left alone if the cluster is to be deleted
// as a whole and its Pods take no place from others: to end a Pod takes the machine half a second, and to empty a
// namespace the API server about seventy requests; those that matter now wait behind them. Otherwise it is deleted. One
// that cannot be deleted stays until the cluster goes.
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

// newNamespace makes one that is deleted when the check ends. Of a cluster that is to be deleted as a whole it is only
// vacated, and only if what is in it burdens others.
func newNamespace(ctx context.Context, burdens func(ctx context.Context, namespace string) bool) string {
	ginkgo.GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: checkNamespace + ID() + "-"}}
	if suite.apart != nil {
		ns.Name = suite.apart.namespace // a second one is refused: its manager would not see it
	}
	if err := suite.admin.Create(ctx, ns); err != nil {
		Require(fmt.Errorf("create namespace: %w", err))
	}
	suite.place.remember(ID(), ns.Name)
	ginkgo.DeferCleanup(func(ctx context.Context) {
		// Not a NodeTimeout: that a slow machine does not come to it is no fault of the learner's.
		ctx, cancel := context.WithTimeout(ctx, StopBudget)
		defer cancel()
		if !suite.config.Disposable || burdens(ctx, ns.Name) {
			vacate(ctx, ns.Name)
		}
		if !suite.config.Disposable {
			_ = suite.admin.Delete(ctx, ns)
		}
	})
	return ns.Name
}

// vacate deletes what the manager cares for. The namespace takes it along, but its controller rests for five
// seconds before it begins, and later checks want to see a manager without other work. What cannot be deleted
// is left to it.
func vacate(ctx context.Context, namespace string) {
	for _, kind := range []client.Object{Memcached{}.object(), &appsv1.Deployment{}} {
		_ = suite.admin.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
}
