package owns

import (
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

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/harness/recorder"
	"github.com/example/operator-lab/labs/internal/finding"
)

var _ = harness.Lab(5, func() {
	harness.Check("weathers-storm", harness.Late, func(ctx SpecContext) {
		harness.Require(weathers(ctx, harness.Run().Seed))
	})
})

// force is how hard a storm blows.
type force struct {
	memcacheds int
	rounds     int
	replica    bool // a second process of the manager works beside the first
	// settle is how long the world may take to be in order, and calmBudget how long it may take from
	// then on until nothing is written for a while.
	settle, calmBudget time.Duration
}

// forces are the two storms there are. An outage costs an informer 0.8 to 1.6 s before it looks again,
// and twice that with each further one that its process lives through. Of two managers one may see new
// Deployments and old specs until then, and the other undoes what it writes; that has to end, not at once.
var forces = map[string]force{
	"":                {memcacheds: 4, rounds: 1, settle: harness.SettleBudget, calmBudget: 5 * time.Second},
	harness.StormLong: {memcacheds: 6, rounds: 4, replica: true, settle: 3 * harness.SettleBudget, calmBudget: 2 * harness.SettleBudget},
}

// storm is one storm: what is drawn for it, and what has happened so far.
type storm struct {
	force
	seed      int64
	rand      *rand.Rand
	namespace string
	sky       *harness.Sky
	residents []*resident
	replica   *harness.Manager

	mu      sync.Mutex
	started time.Time
	story   []string
}

// weathers is one storm from its first Memcached to its verdict.
func weathers(ctx context.Context, seed int64) error {
	GinkgoHelper()
	s := &storm{force: forces[harness.Run().Storm], seed: seed, rand: harness.RandOf(seed)}
	s.namespace = harness.PodlessNamespace(ctx)
	s.started = time.Now()
	return errors.Join(s.weather(ctx), s.keepStory())
}

func (s *storm) weather(ctx context.Context) error {
	if err := s.calm(ctx); err != nil {
		return err
	}
	for range s.rounds {
		if err := s.round(ctx); err != nil {
			return err
		}
	}
	last := s.residents[len(s.residents)-1]
	last.gone = true
	if err := s.strike(ctx, []blow{{act: vanish, on: last}}); err != nil {
		return err
	}
	if err := s.settles(ctx); err != nil {
		return err
	}
	if err := s.rests(ctx); err != nil {
		return err
	}
	if err := s.sky.Clear(); err != nil {
		return err
	}
	return s.fewEvents(ctx)
}

// calm makes the Memcacheds, and waits until all is well: only a world that was in order can be brought
// out of it.
func (s *storm) calm(ctx context.Context) (err error) {
	if s.sky, err = harness.Weather(s.namespace, s.tell); err != nil {
		return err
	}
	for range s.memcacheds {
		r := &resident{Memcached: harness.Invent(s.rand, s.namespace)}
		s.residents = append(s.residents, r)
		if err := r.Create(ctx); err != nil {
			return err
		}
	}
	if err := harness.AwaitCollector(ctx, s.namespace); err != nil {
		return err
	}
	if s.force.replica {
		if err := s.startReplica(); err != nil {
			return err
		}
	}
	return s.inOrder(ctx, harness.ReactBudget)
}

func (s *storm) startReplica() error {
	m, err := harness.TheManager()
	if err != nil {
		return err
	}
	if s.replica, err = m.Replica(); err != nil {
		return err
	}
	DeferCleanup(s.replica.Stop, NodeTimeout(2*harness.StopBudget))
	s.tell("a second process of your manager is started beside the first, without leader election")
	return s.replica.Start(harness.Run().MemcachedImage)
}

const (
	// shortest and longest are the length of an outage. It is over before an informer looks again for
	// the first time.
	shortest, longest = 200 * time.Millisecond, 500 * time.Millisecond
	// breath is the longest pause between two blows.
	breath = 40 * time.Millisecond
	// darkness is the longest time between the death of a manager and its start.
	darkness = 150 * time.Millisecond
)

// round is three gusts, in each of which everybody pulls at the Memcacheds and their Deployments: one
// while the manager is killed in the middle of its work, one while the API server is away, and one while
// it takes no writes. The last is the most telling. After the others every informer lists the world anew,
// and so forgives those who did not try again what had failed.
func (s *storm) round(ctx context.Context) error {
	for _, gust := range []func(context.Context) error{s.death, s.absence, s.refusal} {
		if err := gust(ctx); err != nil {
			return err
		}
	}
	return nil
}

// death is the gust in which the manager dies.
func (s *storm) death(ctx context.Context) error {
	victim, err := s.victim()
	if err != nil {
		return err
	}
	s.sky.Conflicts(2 + s.rand.IntN(2))
	killed := make(chan error, 1)
	writes, dark := 1+s.rand.IntN(3), s.draw(0, darkness)
	blows := s.gust(true, acts...)
	go func() { killed <- s.sky.KillAndRestart(ctx, victim, writes, dark) }()
	err = s.strike(ctx, blows)
	if err := errors.Join(err, <-killed); err != nil {
		return err
	}
	return s.backAtWork(ctx, max(s.settle, harness.StartBudget), "your manager was killed and started again")
}

// absence is the gust in which the API server is not there.
func (s *storm) absence(ctx context.Context) error {
	s.sky.Conflicts(1 + s.rand.IntN(2))
	kinds := []recorder.Outage{recorder.Unavailable, recorder.Unreachable}
	s.sky.Outage(kinds[s.rand.IntN(len(kinds))], s.draw(shortest, longest))
	blows := s.gust(false, acts...)
	// One is always made anew here, after the last restart: what a manager remembers of it lives on.
	anew := blow{act: recreate, on: s.residents[s.rand.IntN(len(s.residents)-1)], after: s.draw(0, breath)}
	if err := s.strike(ctx, slices.Insert(blows, s.rand.IntN(len(blows)+1), anew)); err != nil {
		return err
	}
	return s.backAtWork(ctx, s.settle, "the API server was away for a moment")
}

// refusal is the gust in which nothing can be written. Nobody is made anew here: a Memcached that a
// finalizer holds would not go before it is over.
func (s *storm) refusal(ctx context.Context) error {
	blows := s.gust(false, resize, move, deleteChild, editChild)
	return s.sky.ReadOnly(ctx, s.draw(shortest, longest), 2*len(blows), func() error { return s.strike(ctx, blows) })
}

// victim is the manager to kill: the replica, if there is one, in every second round.
func (s *storm) victim() (*harness.Manager, error) {
	if s.replica != nil && s.rand.IntN(2) == 0 {
		return s.replica, nil
	}
	return harness.TheManager()
}

// blow is one act upon one Memcached.
type blow struct {
	act   act
	on    *resident
	after time.Duration
}

// gust draws one of the acts for each Memcached, or more, so that it holds all of them.
func (s *storm) gust(all bool, acts ...act) []blow {
	var blows []blow
	order := s.rand.Perm(len(acts))
	for i, on := range s.rand.Perm(len(s.residents)) {
		which := s.rand.IntN(len(acts))
		if all {
			which = order[i%len(order)]
		}
		blows = append(blows, blow{act: acts[which], on: s.residents[on], after: s.draw(0, breath)})
	}
	if !all {
		return blows
	}
	for i := len(blows); i < len(order); i++ {
		on := s.residents[s.rand.IntN(len(s.residents))]
		blows = append(blows, blow{act: acts[order[i]], on: on, after: s.draw(0, breath)})
	}
	return blows
}

func (s *storm) strike(ctx context.Context, blows []blow) error {
	for _, b := range blows {
		if err := harness.Throughout(ctx, b.after, func() error { return nil }); err != nil {
			return err
		}
		what, err := b.act(ctx, s.rand, b.on)
		if err != nil {
			return err
		}
		s.tell("%s %s", b.on.Name, what)
	}
	return nil
}

// backAtWork waits, for budget at most, until the manager follows a Memcached again. Without it, outages would fall into
// the start of a manager: it may end then, and Kubernetes would start it again.
func (s *storm) backAtWork(ctx context.Context, budget time.Duration, after string) error {
	r := s.residents[s.rand.IntN(len(s.residents))]
	if err := s.strike(ctx, []blow{{act: move, on: r}}); err != nil {
		return err
	}
	expected := fmt.Sprintf("Deployment %s has port %d, soon after %s", r.Name, r.Port, after)
	_, err := r.AwaitDeployment(ctx, budget, func(d *appsv1.Deployment) error {
		if have := r.wrongPorts(d); have != "" {
			return finding.New("not-converged", expected, "port %s", have)
		}
		return nil
	})
	if err != nil {
		return s.inContext(finding.New("not-converged", expected, "%s", finding.Of(err).Seen))
	}
	return nil
}

func (s *storm) draw(from, to time.Duration) time.Duration {
	return from + time.Duration(s.rand.Int64N(int64(to-from)))
}

// tell adds a line to the story.
func (s *storm) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	s.story = append(s.story, fmt.Sprintf("%5.2f s  %s", time.Since(s.started).Seconds(), line))
}

func (s *storm) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.story)
}

// keepStory writes down what happened, for those who want to know all of it.
func (s *storm) keepStory() error {
	file := filepath.Join(harness.Run().Artifacts, fmt.Sprintf("storm-%d.txt", s.seed))
	if err := os.WriteFile(file, []byte(strings.Join(s.lines(), "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the story of the storm: %w", err)
	}
	return nil
}
