package harness

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	utilwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/example/operator-lab/labs/harness/recorder"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/trace"
)

// Apart is a decorator for checks that handle the manager. A second process of it works for such a check alone, in the
// check's one namespace, and does not see any other; the manager of the other checks does not see that one. So nobody
// has to wait until the others are done.
const Apart = apart("apart")

type apart string

// roll says which checks there are, by what they need of the manager. Every process has the same.
var roll struct {
	apart []string
	// beside are the checks that work with the manager of all, side by side.
	beside []string
}

// enroll puts a check on the roll, and returns its decorators as Ginkgo knows them.
func enroll(id string, args []any) []any {
	switch {
	case slices.Contains(args, any(Apart)):
		roll.apart = append(roll.apart, id)
	case !slices.Contains(args, any(ginkgo.Serial)):
		roll.beside = append(roll.beside, id)
	}
	return slices.DeleteFunc(slices.Clone(args), func(arg any) bool { return arg == Apart })
}

// reserve gives each check of the run that is apart the name of its namespace: the manager of the others is told what not
// to look at before it is started.
func reserve(c Config) map[string]string {
	reserved := map[string]string{}
	for _, id := range judged(c, roll.apart) {
		reserved[id] = checkNamespace + id + "-" + utilrand.String(5) // as the API server would make it up
	}
	return reserved
}

// judged are those of the checks that the run asks.
func judged(c Config, ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return !slices.Contains(c.Checks, id) || slices.Contains(c.Unjudged, id)
	})
}

// viewOf is what the manager of a stage sees: the namespace, or with "" all that nobody else works in.
func viewOf(namespace string) recorder.View {
	v := recorder.View{Only: namespace, Namespaced: namespaced}
	if namespace == "" {
		for _, ns := range suite.shared.Reserved {
			v.Except = append(v.Except, ns)
		}
	}
	return v
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

// workApart gives the running check a stage of its own until it ends.
func workApart(ctx context.Context, namespace string) error {
	if gone := look(ctx, "").Gone; gone != nil {
		return gone // and so would this one be
	}
	s, err := openApart(ctx, namespace)
	if err == nil && s.crowded(s.recorder.Since(0)) && look(ctx, "").Gone == nil {
		if err = s.leave(ctx); err == nil {
			err = awaitTurn(ctx)
		}
		if err == nil {
			s, err = openApart(ctx, namespace)
		}
	}
	if err != nil {
		return err
	}
	suite.apart = s
	ginkgo.DeferCleanup(func(ctx context.Context) error {
		suite.apart = nil
		return s.leave(ctx)
	})
	return nil
}

func openApart(ctx context.Context, namespace string) (*stage, error) {
	w := trace.Join(filepath.Join(suite.config.Artifacts, trace.File))
	s, err := openStage(ctx, namespace, w, "manager-"+ID()+".log", &suite.shared.Program)
	if err != nil {
		w.Close(nil, nil)
	}
	return s, err
}

// leave closes a stage, and adds what was seen on it to the recording of the run.
func (s *stage) leave(ctx context.Context) error {
	defer s.endTrace()
	return s.close(ctx)
}

// crowded says whether the manager cannot run beside the one of the others, which runs: it ended, most likely over a port
// that both want, or it asks for the lease that the other one holds.
func (s *stage) crowded(sent []recorder.Request) bool {
	return s.manager.gone() != nil || slices.ContainsFunc(sent, func(r recorder.Request) bool {
		return r.Group == "coordination.k8s.io" && r.Resource == "leases"
	})
}

// turns are taken by checks that are apart and whose managers cannot run beside others.
type turns struct {
	moving sync.Mutex // held while the manager is stopped or started

	mu     sync.Mutex
	holder string
	ready  bool // the manager is stopped
}

// turn has the manager stopped for a check, once no other check needs it, and says whether it is. It does not wait.
func (s *stage) turn(check string) bool {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	if s.turns.holder == "" && s.progress.over(judged(suite.config, roll.beside)) {
		s.turns.holder, s.turns.ready = check, false
		s.turns.moving.Lock()
		go s.makeRoom()
	}
	return s.turns.holder == check && s.turns.ready
}

func (s *stage) makeRoom() {
	defer s.turns.moving.Unlock()
	err := s.manager.Stop(context.Background())
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	if s.turns.ready = err == nil; err != nil {
		s.turns.holder = "" // to be tried again
	}
}

// turnEnded brings the manager back for whoever comes next, and says whether it was this check's turn.
func (s *stage) turnEnded(check string) bool {
	s.turns.mu.Lock()
	mine := s.turns.holder == check
	s.turns.mu.Unlock()
	if !mine {
		return false
	}
	s.turns.moving.Lock()
	err := s.manager.Start(suite.config.MemcachedImage)
	s.turns.moving.Unlock()
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	s.turns.holder = ""
	return err == nil
}

// awaitTurn returns when the manager of the others is stopped, until the running check ends.
func awaitTurn(ctx context.Context) error {
	ginkgo.DeferCleanup(func() { tell(context.Background(), pathTurnEnded) })
	return utilwait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (mine bool, err error) {
		if err := suite.arena.get(ctx, pathTurn, checkQuery(), &mine); err != nil && ctx.Err() == nil {
			return false, finding.Machine("stop the manager of the other checks", err)
		}
		if mine {
			return true, nil
		}
		if by := look(ctx, "").anyFailed(); by != "" {
			return false, blocked(by)
		}
		return false, nil
	})
}
