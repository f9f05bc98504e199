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
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/faults"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

var _ = Describe("Lab 5, the storm", env.Lab(5), func() {
	It("converges after a storm", env.Check("weathers-storm", env.Last), func(ctx SpecContext) {
		runScenario(ctx)
	})
})

// profile is how hard a scenario is for the operator.
type profile struct {
	memcacheds int
	rounds     int
	replica    bool // a second process of the manager works beside the first
	// settle is how long the namespace may take to be in order, and quietTimeout how long it may take from
	// then on until nothing is written for a while.
	settle, quietTimeout time.Duration
}

// settleTimeout is how long a namespace may take to be in order again after a storm. An informer that lost
// its watch looks again after 0.8 to 1.6 s, and a queue that met errors in the meantime waits as long.
const settleTimeout = 12 * time.Second

// profiles are the two scenarios there are. An outage costs an informer 0.8 to 1.6 s before it looks again,
// and twice that with each further one that its process lives through. Of two managers one may see new
// Deployments and old specs until then, and the other undoes what it writes; that has to end, not at once.
var profiles = map[string]profile{
	"":              {memcacheds: 4, rounds: 1, settle: settleTimeout, quietTimeout: 5 * time.Second},
	suite.StormLong: {memcacheds: 6, rounds: 4, replica: true, settle: 3 * settleTimeout, quietTimeout: 2 * settleTimeout},
}

// scenario is one chaos test: what is drawn for it, and what has happened so far. Learners know it as the storm.
type scenario struct {
	profile
	seed      int64
	rand      *rand.Rand
	namespace string
	faults    *faults.Injector
	targets   []*target

	mu       sync.Mutex
	started  time.Time
	timeline []string
}

// runScenario is one scenario from its first Memcached to its verdict.
func runScenario(ctx context.Context) {
	GinkgoHelper()
	s := &scenario{profile: profiles[env.Run().Storm], seed: env.Run().Seed, rand: env.Rand()}
	s.namespace = env.PodlessNamespace(ctx)
	s.started = time.Now()
	DeferCleanup(s.keepTimeline)
	s.baseline(ctx)
	for i := range s.rounds {
		s.round(ctx, i)
	}
	last := s.targets[len(s.targets)-1]
	last.gone = true
	s.apply(ctx, step{action: vanish, on: last})
	s.converges(ctx)
	s.becomesQuiet(ctx)
	Expect(s.faults.Clear()).To(Succeed())
	Expect(s.fewEvents(ctx)).To(Succeed())
}

// baseline makes the Memcacheds, and waits until all is well: only what was in order can be brought
// out of it.
func (s *scenario) baseline(ctx context.Context) {
	GinkgoHelper()
	var err error
	s.faults, err = faults.New(s.namespace, s.log)
	Expect(err).To(Succeed())
	for range s.memcacheds {
		r := &target{Memcached: env.NewMemcached(s.namespace)}
		s.targets = append(s.targets, r)
		Expect(r.Create(ctx)).To(Succeed())
	}
	Expect(awaitCollector(ctx, s.namespace)).To(Succeed())
	if s.replica {
		s.log("a second process of your manager is started beside the first, without leader election")
		Expect(s.faults.StartReplica()).To(Succeed())
	}
	Eventually(ctx, env.Polled(s.namespace, s.observe)).WithTimeout(s.settle).Should(match.Make(s.compare).ByKubernetes(s.settle))
}

const (
	// shortestOutage and longestOutage are the length of an outage. It is over before an informer looks again for
	// the first time.
	shortestOutage, longestOutage = 200 * time.Millisecond, 500 * time.Millisecond
	// longestPause is the longest pause between two steps.
	longestPause = 40 * time.Millisecond
	// restartTimeout is how long a manager may take to be back at work after it was killed: it builds its caches anew.
	restartTimeout = 15 * time.Second
	// downtime is the longest time between the death of a manager and its start.
	downtime = 150 * time.Millisecond
)

// round is three phases, in each of which everybody pulls at the Memcacheds and their Deployments: one
// while the manager is killed in the middle of its work, one while the API server is away, and one while
// it takes no writes. The last is the most telling. After the others every informer lists all objects anew,
// and so forgives those who did not try again what had failed.
func (s *scenario) round(ctx context.Context, i int) {
	GinkgoHelper()
	if i%2 == 0 {
		s.managerDies(ctx, s.creation, 1)
	} else {
		s.managerDies(ctx, anyWrite, 1+s.rand.IntN(3))
	}
	s.serverAway(ctx)
	s.readOnly(ctx)
}

// anyWrite is a write to a Memcached or a Deployment.
func anyWrite(r apiproxy.Request) bool {
	return r.Resource == env.Memcacheds || r.Resource == env.Deployments
}

// creation is that of a Memcached's Deployment, when what else belongs to it may not have been sent yet.
func (s *scenario) creation(r apiproxy.Request) bool {
	if r.Resource != env.Deployments || !r.Created() {
		return false
	}
	return slices.ContainsFunc(s.targets, func(t *target) bool { return t.Name == r.Object })
}

// managerDies is the phase in which the manager dies, when it has sent so many writes for which moment is true.
func (s *scenario) managerDies(ctx context.Context, moment func(apiproxy.Request) bool, writes int) {
	GinkgoHelper()
	replica := s.replica && s.rand.IntN(2) == 0
	s.faults.Conflicts(2 + s.rand.IntN(2))
	dark := s.draw(0, downtime)
	steps := s.phase(true, actions...)
	var killed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		killed = s.faults.KillAndRestart(ctx, replica, moment, writes, dark)
	}()
	defer func() { <-done }() // of a check that fails meanwhile, too
	s.apply(ctx, steps...)
	<-done
	Expect(killed).To(Succeed())
	s.backAtWork(ctx, max(s.settle, restartTimeout), "your manager was killed and started again")
	s.ownsWhatIsThere(ctx)
}

// serverAway is the phase in which the API server is not there.
func (s *scenario) serverAway(ctx context.Context) {
	GinkgoHelper()
	s.faults.Conflicts(1 + s.rand.IntN(2))
	steps := s.phase(false, actions...)
	// One is always made anew here, after the last restart: what a manager remembers of it lives on.
	anew := step{action: recreate, on: s.targets[s.rand.IntN(len(s.targets)-1)], after: s.draw(0, longestPause)}
	s.apply(ctx, slices.Insert(steps, s.rand.IntN(len(steps)+1), anew)...)
	s.backAtWork(ctx, s.settle, "the API server was away for a moment")
	s.watchesDeployments(ctx)
}

// readOnly is the phase in which nothing can be written. Nobody is made anew here: a Memcached that a
// finalizer holds would not go before it is over.
func (s *scenario) readOnly(ctx context.Context) {
	GinkgoHelper()
	steps := s.phase(true, resize, move, deleteChild, editChild)
	Expect(s.faults.RefuseWrites(ctx, apiproxy.ReadOnly, s.draw(shortestOutage, longestOutage), 2*len(steps), func() error {
		s.apply(ctx, steps...)
		return nil
	})).To(Succeed())
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

func (s *scenario) apply(ctx context.Context, steps ...step) {
	GinkgoHelper()
	for _, b := range steps {
		Expect(env.Sleep(ctx, b.after)).To(Succeed())
		what, err := b.action(ctx, s.rand, b.on)
		Expect(err).To(Succeed())
		s.log("%s %s", b.on.Name, what)
	}
}

// backAtWork waits, for timeout at most, until the manager follows a Memcached again. Without it, outages would fall into
// the start of a manager: it may end then, and Kubernetes would start it again.
func (s *scenario) backAtWork(ctx context.Context, timeout time.Duration, after string) {
	GinkgoHelper()
	r := s.targets[s.rand.IntN(len(s.targets))]
	s.apply(ctx, step{action: move, on: r})
	expected := fmt.Sprintf("Deployment %s has port %d, soon after %s", r.Name, r.Port, after)
	Eventually(ctx, env.DeploymentOf(r.Memcached)).WithTimeout(timeout).Should(match.Make(func(d *appsv1.Deployment) error {
		if d.UID == "" {
			return s.inContext(finding.New("not-converged", expected, "there is no Deployment"))
		}
		if metav1.GetControllerOf(d) == nil { // whoever leaves alone what is nobody's moves nothing
			return s.inContext(finding.New("wrong-owner", fmt.Sprintf("Deployment %s is controlled by the Memcached %s", r.Name, r.Name), "it has no controller"))
		}
		if have := r.wrongPorts(d); have != "" {
			return s.inContext(finding.New("not-converged", expected, "port %s", have))
		}
		return nil
	}).Unexplained())
}

// watchesDeployments waits until the manager puts back an edit of a Deployment. Each informer lists anew when its own pause is
// over, up to 1.6 s after the outage. A manager that follows Memcacheds again need not hear of Deployments yet, and nobody
// hears of one that was made and deleted before.
func (s *scenario) watchesDeployments(ctx context.Context) {
	GinkgoHelper()
	r := s.targets[s.rand.IntN(len(s.targets))]
	s.becomesRight(ctx, r) // so that nobody deletes or replaces what is edited
	replicas := drifts(r.Memcached)[0]
	s.log("%s has a Deployment in which somebody changes %s", r.Name, replicas.what)
	Expect(edit(ctx, r.Memcached, replicas.change)).To(Succeed())
	s.becomesRight(ctx, r)
}

// ownsWhatIsThere waits until each Deployment has the Memcached of today as its controller. The manager may have been killed
// between a creation and what belongs to it: that Deployment must not be deleted before it is looked at.
func (s *scenario) ownsWhatIsThere(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, env.Polled(s.namespace, s.observe)).WithTimeout(s.settle).Should(match.Make(func(w state) error {
		for _, r := range s.living() {
			if err := rightOwner(r, w); err != nil {
				return s.inContext(err)
			}
		}
		return nil
	}).ByKubernetes(s.settle))
}

// becomesRight waits until a Memcached has the Deployment of its spec.
func (s *scenario) becomesRight(ctx context.Context, r *target) {
	GinkgoHelper()
	Eventually(ctx, env.Polled(s.namespace, s.observe)).WithTimeout(s.settle).Should(match.Make(func(w state) error {
		return s.inContext(cmp.Or(rightOwner(r, w), rightDeployment(r, w)))
	}).ByKubernetes(s.settle))
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
	file := filepath.Join(env.Run().Artifacts, fmt.Sprintf("storm-%d.txt", s.seed))
	if err := os.WriteFile(file, []byte(strings.Join(s.lines(), "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the timeline of the storm: %w", err)
	}
	return nil
}

// awaitCollector waits until the garbage collector knows Memcacheds. It looks for new kinds every 30 s only; until then
// nothing goes with its owner, and nobody can be blamed for that.
func awaitCollector(ctx context.Context, namespace string) error {
	orphan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "of-nobody",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: suite.Group + "/v1alpha1", Kind: suite.Kind, Name: "nobody", UID: uuid.NewUUID(),
		}},
	}}
	if err := env.Admin().Create(ctx, orphan); err != nil {
		return fmt.Errorf("create a child of nobody: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, env.CollectTimeout)
	defer cancel()
	for {
		err := env.Admin().Get(ctx, client.ObjectKeyFromObject(orphan), orphan)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if paused := env.Sleep(ctx, collectorPoll); paused != nil {
			return fmt.Errorf("wait until the garbage collector knows Memcacheds: %w", errors.Join(err, paused))
		}
	}
}

// collectorPoll is how often to look whether the garbage collector has done its work.
const collectorPoll = 100 * time.Millisecond
