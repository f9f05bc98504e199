// Package env is what a check works with: the cluster and its namespaces, the learner's manager with the proxy in front of
// it, the objects that the check makes, and what stands in the report when it fails.
package env

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/trace"
)

// current is the state of this Ginkgo process. Ginkgo's nodes are package-level functions, so their
// state has to be as well; it is set once, before the first check.
var current struct {
	config      suite.Config
	admin       client.WithWatch
	adminConfig *rest.Config
	shared      shared
	env         *testEnv       // nil when no lab of the run judges a manager, and when there is none that works
	trace       *trace.Watcher // process 1 only
	results     *results       // nil when each check is judged in its own right
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
	// Program is what the manager's program said about itself.
	Program program `json:"program,omitzero"`
}

// SetUp prepares the cluster once, on the first Ginkgo process: the learner's CRD, and the manager of that process
// behind its recording proxy. What is wrong with the learner's part of it becomes a finding that the
// checks report; an error here is never the learner's fault.
func SetUp(ctx context.Context) (prepared []byte, err error) {
	current.shared.Run = utilrand.String(10)
	defer func() { told(err) }()
	if err := connect(); err != nil {
		return nil, err
	}
	if current.config.Definition {
		current.shared.CRD = installLearnersCRD(ctx)
	}
	current.trace = beginTrace(ctx)
	if current.config.NeedsManager() {
		if err := startManager(ctx); err != nil {
			return nil, err
		}
	}
	return json.Marshal(current.shared)
}

// told adds an error to the results of the run.
func told(err error) {
	if err != nil {
		_ = tell(suite.Result{State: suite.Broken, Defect: err.Error()})
	}
}

// startManager starts the manager of the first process. A program that does not work is not started by others, too.
func startManager(ctx context.Context) (err error) {
	if current.shared.CRD == nil {
		awaitDiscovery(ctx)
	}
	if err := createAccount(ctx); err != nil {
		return err
	}
	if current.env, err = openTestEnv(ctx, current.trace, nil); err != nil {
		return err
	}
	current.shared.Program, current.shared.Gone = current.env.manager.program, current.env.gone()
	return nil
}

// Join gives every Ginkgo process what [SetUp] prepared, and a manager of its own. Where that one cannot run beside the
// others' the run ends: see [suite.Restart].
func Join(ctx context.Context, prepared []byte) (err error) {
	defer func() { told(err) }()
	if current.admin == nil {
		if err := connect(); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(prepared, &current.shared); err != nil {
		return fmt.Errorf("read what the first process prepared: %w", err)
	}
	if !current.config.Unblocked {
		current.results = newResults(filepath.Join(current.config.Artifacts, suite.ResultsFile), current.shared.Run)
	}
	if !current.config.NeedsManager() {
		return nil
	}
	switch {
	case current.shared.Gone != nil:
		return nil // that the manager is gone, the checks say
	case current.env != nil: // the first process: that others start their managers does not end this one
	default:
		w := trace.Join(filepath.Join(current.config.Artifacts, trace.File))
		if current.env, err = openTestEnv(ctx, w, &current.shared.Program); err != nil {
			return err
		}
	}
	if processes() > 1 && current.env.conflicts(requests(0)) {
		return giveUp()
	}
	return nil
}

// Leave ends the manager and the proxy of a Ginkgo process that has no more checks.
func Leave(ctx context.Context) error {
	if current.env == nil {
		return nil
	}
	err := current.env.close(ctx)
	told(err)
	if current.trace == nil {
		current.env.trace.Close()
	}
	return err
}

// TearDown ends the recording of the run, on the first process, when all others have left. If the cluster stays, it takes the
// finalizers away from Memcacheds that are being deleted, as far as it can: the managers that would are gone.
func TearDown(ctx context.Context) {
	current.trace.Close()
	if !current.config.NeedsManager() || current.config.Disposable {
		return
	}
	all := Memcached{}.list()
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
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	current.admin, err = client.NewWithWatch(rc, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	return nil
}

// Admin is a client with all rights. It knows the built-in types and CustomResourceDefinition; send
// everything else unstructured.
func Admin() client.WithWatch { return current.admin }

// adminConfig is the configuration behind [Admin], for requests that need other clients.
func adminConfig() *rest.Config { return rest.CopyConfig(current.adminConfig) }

// learnersCRD is nil when the workspace's own manifest is installed and Established, and otherwise a
// finding with the cause [suite.CauseNoManifest] or [suite.CauseRefused].
func learnersCRD() error {
	if current.shared.CRD == nil {
		return nil
	}
	return current.shared.CRD
}
