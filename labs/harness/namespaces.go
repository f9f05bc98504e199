package harness

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/trace"
)

// checkNamespace begins the names of the namespaces that checks work in.
const checkNamespace = trace.NamespacePrefix

// namespacesPerCheck is how many namespaces one check may work in.
const namespacesPerCheck = 2

// namespaceName is the name of a check's n-th namespace, should that check run in the given process. Every process knows
// all of these names before the first manager starts, because a manager is told then what not to show of the cluster.
func namespaceName(run string, process int, check string, n int) string {
	h := fnv.New64a()
	fmt.Fprint(h, run, "/", process, "/", check, "/", n)
	suffix := strconv.FormatUint(h.Sum64(), 36)
	return checkNamespace + check + "-" + suffix[len(suffix)-5:]
}

// hiddenFrom are the namespaces in which checks of other processes may work.
func hiddenFrom(process, processes int, run string, checks []string) []string {
	var hidden []string
	for other := 1; other <= processes; other++ {
		if other == process {
			continue
		}
		for _, check := range checks {
			for n := range namespacesPerCheck {
				hidden = append(hidden, namespaceName(run, other, check, n))
			}
		}
	}
	return hidden
}

// namespaceFilter shows a manager everything but those namespaces.
func namespaceFilter(hidden []string) apiproxy.NamespaceFilter {
	return apiproxy.NamespaceFilter{Hidden: hidden, Namespaced: namespaced}
}

// namespaced says whether a resource lies in namespaces, as the API server's discovery has it. One that it does not know
// does not.
func namespaced(group, resource string) (bool, error) {
	mapper := suite.admin.RESTMapper()
	kind, err := mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind())
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// awaitDiscovery returns when the API server tells of Memcacheds, a moment after they are Established: a manager that
// asked before would be shown all of them.
func awaitDiscovery(ctx context.Context) {
	_ = utilwait.PollUntilContextTimeout(ctx, pollInterval, InstallBudget, true, func(context.Context) (bool, error) {
		_, err := suite.admin.RESTMapper().RESTMapping(gvk.GroupKind())
		return err == nil, nil
	})
}

// place is where the running check works. The manager tells about itself from a goroutine of its own.
type place struct {
	mu         sync.Mutex
	check      string
	namespaces []string
}

// add gives the check the name of another namespace, and forgets those of the check before.
func (p *place) add(check string, name func(n int) string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.check != check {
		p.check, p.namespaces = check, nil
	}
	if len(p.namespaces) == namespacesPerCheck {
		return "", fmt.Errorf("the check %s wants more than %d namespaces: raise namespacesPerCheck in labs/harness", check, namespacesPerCheck)
	}
	namespace := name(len(p.namespaces))
	p.namespaces = append(p.namespaces, namespace)
	return namespace, nil
}

// leave forgets the check, which has ended.
func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check, p.namespaces = "", nil
}

// all are the namespaces of the running check.
func (p *place) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.namespaces)
}
