package owns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
)

var _ = harness.Lab(5, func() {
	harness.Check("weathers-storm", harness.Late, func(ctx SpecContext) {
		harness.Require(runScenario(ctx, harness.Run().Seed))
	})
})

// profile is how hard a scenario is for the operator.
type profile struct {
	memcacheds int
	rounds     int
	replica    bool // a second process of the manager works beside the first
	// settle is how long the namespace may take to be in order, and quietBudget how long it may take from
	// then on until nothing is written for a while.
	settle, quietBudget time.Duration
}

// profiles are the two scenarios there are. An outage costs an informer 0.8 to 1.6 s before it looks again,
// and twice that with each further one that its process lives through. Of two managers one may see new
// Deployments and old specs until then, and the other undoes what it writes; that has to end, not at once.
var profiles = map[string]profile{
	"":                {memcacheds: 4, rounds: 1, settle: harness.SettleBudget, quietBudget: 5 * time.Second},
	harness.StormLong: {memcacheds: 6, rounds: 4, replica: true, settle: 3 * harness.SettleBudget, quietBudget: 2 * harness.SettleBudget},
}

// scenario is one chaos test: what is drawn for it, and what has happened so far. Learners know it as the storm.
type scenario struct {
	profile
	seed      int64
	rand      *rand.Rand
	namespace string
	faults    *harness.FaultInjector
	targets   []*target
	replica   *harness.Manager

	mu       sync.Mutex
	started  time.Time
	timeline []string
}

// runScenario is one scenario from its first Memcached to its verdict.
func runScenario(ctx context.Context, seed int64) error {
	GinkgoHelper()
	s := &scenario{profile: profiles[harness.Run().Storm], seed: seed, rand: harness.RandOf(seed)}
	s.namespace = harness.PodlessNamespace(ctx)
	s.started = time.Now()
	return errors.Join(s.run(ctx), s.keepTimeline())
}

func (s *scenario) run(ctx context.Context) error {
	if err := s.baseline(ctx); err != nil {
		return err
	}
	for range s.rounds {
		if err := s.round(ctx); err != nil {
			return err
		}
	}
	last := s.targets[len(s.targets)-1]
	last.gone = true
	if err := s.apply(ctx, []step{{action: vanish, on: last}}); err != nil {
		return err
	}
	if err := s.converges(ctx); err != nil {
		return err
	}
	if err := s.becomesQuiet(ctx); err != nil {
		return err
	}
	if err := s.faults.Clear(); err != nil {
		return err
	}
	return s.fewEvents(ctx)
}

// baseline makes the Memcacheds, and waits until all is well: only what was in order can be brought
// out of it.
func (s *scenario) baseline(ctx context.Context) (err error) {
	if s.faults, err = harness.InjectFaults(s.namespace, s.log); err != nil {
		return err
	}
	for range s.memcacheds {
		r := &target{Memcached: harness.Invent(s.rand, s.namespace)}
		s.targets = append(s.targets, r)
		if err := r.Create(ctx); err != nil {
			return err
		}
	}
	if err := harness.AwaitCollector(ctx, s.namespace); err != nil {
		return err
	}
	if s.profile.replica {
		if err := s.startReplica(); err != nil {
			return err
		}
	}
	return s.inOrder(ctx, harness.ReactBudget)
}

func (s *scenario) startReplica() error {
	m, err := harness.TheManager()
	if err != nil {
		return err
	}
	if s.replica, err = m.Replica(); err != nil {
		return err
	}
	DeferCleanup(s.replica.Stop, NodeTimeout(2*harness.StopBudget))
	s.log("a second process of your manager is started beside the first, without leader election")
	return s.replica.Start(harness.Run().MemcachedImage)
}

const (
	// shortestOutage and longestOutage are the length of an outage. It is over before an informer looks again for
	// the first time.
	shortestOutage, longestOutage = 200 * time.Millisecond, 500 * time.Millisecond
	// longestPause is the longest pause between two steps.
	longestPause = 40 * time.Millisecond
	// downtime is the longest time between the death of a manager and its start.
	downtime = 150 * time.Millisecond
)

// round is three phases, in each of which everybody pulls at the Memcacheds and their Deployments: one
// while the manager is killed in the middle of its work, one while the API server is away, and one while
// it takes no writes. The last is the most telling. After the others every informer lists all objects anew,
// and so forgives those who did not try again what had failed.
func (s *scenario) round(ctx context.Context) error {
	for _, phase := range []func(context.Context) error{s.managerDies, s.serverAway, s.readOnly} {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	return nil
}

// managerDies is the phase in which the manager dies.
func (s *scenario) managerDies(ctx context.Context) error {
	manager, err := s.managerToKill()
	if err != nil {
		return err
	}
	s.faults.Conflicts(2 + s.rand.IntN(2))
	killed := make(chan error, 1)
	writes, dark := 1+s.rand.IntN(3), s.draw(0, downtime)
	steps := s.phase(true, actions...)
	go func() { killed <- s.faults.KillAndRestart(ctx, manager, writes, dark) }()
	err = s.apply(ctx, steps)
	if err := errors.Join(err, <-killed); err != nil {
		return err
	}
	return s.backAtWork(ctx, max(s.settle, harness.StartBudget), "your manager was killed and started again")
}

// serverAway is the phase in which the API server is not there.
func (s *scenario) serverAway(ctx context.Context) error {
	s.faults.Conflicts(1 + s.rand.IntN(2))
	kinds := []apiproxy.Outage{apiproxy.Unavailable, apiproxy.Unreachable}
	s.faults.Outage(kinds[s.rand.IntN(len(kinds))], s.draw(shortestOutage, longestOutage))
	steps := s.phase(false, actions...)
	// One is always made anew here, after the last restart: what a manager remembers of it lives on.
	anew := step{action: recreate, on: s.targets[s.rand.IntN(len(s.targets)-1)], after: s.draw(0, longestPause)}
	if err := s.apply(ctx, slices.Insert(steps, s.rand.IntN(len(steps)+1), anew)); err != nil {
		return err
	}
	if err := s.backAtWork(ctx, s.settle, "the API server was away for a moment"); err != nil {
		return err
	}
	return s.watchesDeployments(ctx)
}

// readOnly is the phase in which nothing can be written. Nobody is made anew here: a Memcached that a
// finalizer holds would not go before it is over.
func (s *scenario) readOnly(ctx context.Context) error {
	steps := s.phase(false, resize, move, deleteChild, editChild)
	return s.faults.ReadOnly(ctx, s.draw(shortestOutage, longestOutage), 2*len(steps), func() error { return s.apply(ctx, steps) })
}

// managerToKill is the manager to kill: the replica, if there is one, in every second round.
func (s *scenario) managerToKill() (*harness.Manager, error) {
	if s.replica != nil && s.rand.IntN(2) == 0 {
		return s.replica, nil
	}
	return harness.TheManager()
}

// step is one action upon one Memcached.
type step struct {
	action action
	on     *target
	after  time.Duration
}

// phase draws one of the actions for each Memcached, or more, so that it holds all of them.
func (s *scenario) phase(all bool, actions ...action) []step {
	var steps []step
	order := s.rand.Perm(len(actions))
	for i, on := range s.rand.Perm(len(s.targets)) {
		which := s.rand.IntN(len(actions))
		if all {
			which = order[i%len(order)]
		}
		steps = append(steps, step{action: actions[which], on: s.targets[on], after: s.draw(0, longestPause)})
	}
	if !all {
		return steps
	}
	for i := len(steps); i < len(order); i++ {
		on := s.targets[s.rand.IntN(len(s.targets))]
		steps = append(steps, step{action: actions[order[i]], on: on, after: s.draw(0, longestPause)})
	}
	return steps
}

func (s *scenario) apply(ctx context.Context, steps []step) error {
	for _, b := range steps {
		if err := harness.Throughout(ctx, b.after, func() error { return nil }); err != nil {
			return err
		}
		what, err := b.action(ctx, s.rand, b.on)
		if err != nil {
			return err
		}
		s.log("%s %s", b.on.Name, what)
	}
	return nil
}

// backAtWork waits, for budget at most, until the manager follows a Memcached again. Without it, outages would fall into
// the start of a manager: it may end then, and Kubernetes would start it again.
func (s *scenario) backAtWork(ctx context.Context, budget time.Duration, after string) error {
	r := s.targets[s.rand.IntN(len(s.targets))]
	if err := s.apply(ctx, []step{{action: move, on: r}}); err != nil {
		return err
	}
	expected := fmt.Sprintf("Deployment %s has port %d, soon after %s", r.Name, r.Port, after)
	_, err := r.AwaitDeployment(ctx, budget, func(d *appsv1.Deployment) error {
		if have := r.wrongPorts(d); have != "" {
			return finding.New("not-converged", expected, "port %s", have)
		}
		return nil
	})
	if err == nil || !harness.IsAnswer(err) {
		return err
	}
	return s.inContext(finding.New("not-converged", expected, "%s", finding.Of(err).Seen))
}

// watchesDeployments waits until the manager puts back an edit of a Deployment. Each informer lists anew when its own pause is
// over, up to 1.6 s after the outage. A manager that follows Memcacheds again need not hear of Deployments yet, and nobody
// hears of one that was made and deleted before.
func (s *scenario) watchesDeployments(ctx context.Context) error {
	r := s.targets[s.rand.IntN(len(s.targets))]
	if err := s.becomesRight(ctx, r); err != nil { // so that nobody deletes or replaces what is edited
		return err
	}
	replicas := drifts(r.Memcached)[0]
	s.log("%s has a Deployment in which somebody changes %s", r.Name, replicas.what)
	if err := edit(ctx, r.Memcached, replicas.change); err != nil {
		return err
	}
	return s.becomesRight(ctx, r)
}

// becomesRight waits until a Memcached has the Deployment of its spec.
func (s *scenario) becomesRight(ctx context.Context, r *target) error {
	return s.inContext(harness.Until(ctx, s.settle, &appsv1.DeploymentList{}, func() error {
		w, err := s.observe(ctx)
		if err != nil {
			return err
		}
		return cmp.Or(rightOwner(r, w), rightDeployment(r, w))
	}, client.InNamespace(s.namespace)))
}

func (s *scenario) draw(from, to time.Duration) time.Duration {
	return from + time.Duration(s.rand.Int64N(int64(to-from)))
}

// log adds a line to the timeline.
func (s *scenario) log(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	s.timeline = append(s.timeline, fmt.Sprintf("%5.2f s  %s", time.Since(s.started).Seconds(), line))
}

func (s *scenario) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.timeline)
}

// keepTimeline writes down what happened, for those who want to know all of it.
func (s *scenario) keepTimeline() error {
	file := filepath.Join(harness.Run().Artifacts, fmt.Sprintf("storm-%d.txt", s.seed))
	if err := os.WriteFile(file, []byte(strings.Join(s.lines(), "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the timeline of the storm: %w", err)
	}
	return nil
}
