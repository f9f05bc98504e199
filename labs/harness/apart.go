package harness

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

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

// namespaced says whether a resource lies in namespaces, as the API server's discovery has it.
func namespaced(group, resource string) bool {
	mapper := suite.admin.RESTMapper()
	kind, err := mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if err != nil {
		return false // the API server will say that it does not know it
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind())
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// workApart gives the running check a stage of its own until it ends.
func workApart(ctx context.Context, namespace string) error {
	s, err := openApart(ctx, namespace)
	if err == nil && s.crowded(s.recorder.Since(0)) {
		if err = s.close(ctx); err == nil {
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
		defer s.endTrace()
		return s.close(ctx)
	})
	return nil
}

func openApart(ctx context.Context, namespace string) (*stage, error) {
	w := trace.Join(filepath.Join(suite.config.Artifacts, trace.File))
	return openStage(ctx, namespace, w, "manager-"+ID()+".log", &suite.shared.Program)
}

// taken is what Go's net package says of a port that another program has.
const taken = "address already in use"

// crowded says whether the manager cannot run beside another one of its program: its ports are fixed, or it asks for the
// lease that the other one holds.
func (s *stage) crowded(sent []recorder.Request) bool {
	if s.manager.gone() != nil && len(s.manager.output.Lines(taken)) > 0 {
		return true
	}
	return slices.ContainsFunc(sent, func(r recorder.Request) bool {
		return r.Group == "coordination.k8s.io" && r.Resource == "leases"
	})
}

// turns are taken by checks that are apart and whose managers cannot run beside others.
type turns struct {
	mu     sync.Mutex
	holder string
}

// turn stops the manager for a check, once no other check needs it, and says whether it is stopped.
func (s *stage) turn(check string) bool {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	if s.turns.holder != "" || !s.progress.over(judged(suite.config, roll.beside)) {
		return s.turns.holder == check
	}
	s.turns.holder = check
	return s.manager.Stop(context.Background()) == nil
}

// turnEnded brings the manager back for whoever comes next, and says whether it was this check's turn.
func (s *stage) turnEnded(check string) bool {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	if s.turns.holder != check {
		return false
	}
	s.turns.holder = ""
	return s.manager.Start(suite.config.MemcachedImage) == nil
}

// awaitTurn returns when the manager of the others is stopped, until the running check ends.
func awaitTurn(ctx context.Context) error {
	ginkgo.DeferCleanup(func() { tell(context.Background(), pathTurnEnded) })
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		mine := false
		if err := suite.arena.get(ctx, pathTurn, checkQuery(), &mine); err != nil && ctx.Err() == nil {
			return finding.Machine("stop the manager of the other checks", err)
		}
		if mine {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
