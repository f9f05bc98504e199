package env

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/internal/suite"
)

// The kinds of checks that begin earlier than others, as Ginkgo's decorators.
const (
	// First is for the check that opens its lab: the others are given up when it fails.
	First = ginkgo.SpecPriority(10)
	// Long is for a check that takes longer than others, mostly waiting. It does not begin, or is given up, when another check
	// has failed.
	Long = ginkgo.SpecPriority(5)
)

// Lab decorates the container with the checks of lab n.
func Lab(n int) ginkgo.Labels { return ginkgo.Label(fmt.Sprintf("%s%d", suite.LabLabel, n)) }

// Check decorates the spec that is one check. id stands in lab.yaml. A check is bounded by [CheckLimit].
func Check(id string, kind ...ginkgo.SpecPriority) []any {
	decorators := []any{ginkgo.Label(suite.CheckLabel + id), ginkgo.NodeTimeout(CheckLimit)}
	for _, k := range kind {
		decorators = append(decorators, k)
	}
	return decorators
}

// check is one check while it runs in this process.
type check struct {
	id     string
	lab    int
	long   bool
	rand   *rand.Rand   // see [Rand]
	result suite.Result // once it has failed

	mu         sync.Mutex // the manager tells about itself from a goroutine of its own
	namespaces []string
	memcacheds []Memcached
}

// newCheck makes the check of a spec. What it draws depends on the run's seed and its id alone.
func newCheck(spec types.SpecReport, seed int64) *check {
	id := label(spec.Labels(), suite.CheckLabel)
	n, _ := strconv.Atoi(label(spec.Labels(), suite.LabLabel))
	h := fnv.New64a()
	h.Write([]byte(id))
	return &check{id: id, lab: n, long: spec.SpecPriority == int(Long), rand: rand.New(rand.NewPCG(uint64(seed), h.Sum64()))}
}

// running is the check that runs, or the one that ran last.
func running() *check {
	if c := current.check.Load(); c != nil {
		return c
	}
	return &check{}
}

// allNamespaces are those that the check works in.
func (c *check) allNamespaces() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.namespaces)
}

// created are the Memcacheds that the check has made.
func (c *check) created() []Memcached {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.memcacheds)
}

// BeginCheck prepares the manager for a check. The suite calls it before each of them.
func BeginCheck(ctx context.Context) {
	ginkgo.GinkgoHelper()
	c := newCheck(ginkgo.CurrentSpecReport(), current.config.Seed)
	current.check.Store(c)
	gomega.Default = NewGomega(c.fail)
	if by := status().Pointless; by != "" {
		require(blocked(by))
	}
	if current.env != nil {
		require(current.env.restore(ctx, c.lab))
	}
}

// EndCheck fails a check that has passed if its manager exited meanwhile, because where nothing runs, nothing goes wrong. The
// suite calls it after each check.
func EndCheck() {
	ginkgo.GinkgoHelper()
	c := running()
	if ginkgo.CurrentSpecReport().Failed() || len(c.created()) == 0 {
		return
	}
	if gone := status().Gone; gone != nil {
		require(gone)
	}
}

// label is what follows a prefix in one of the labels.
func label(labels []string, prefix string) string {
	for _, label := range labels {
		if rest, ok := strings.CutPrefix(label, prefix); ok {
			return rest
		}
	}
	return ""
}

// Rand is the running check's source. What it gives depends on the run's seed and the check's id alone,
// so that a printed seed replays the same values in any order of checks.
func Rand() *rand.Rand { return running().rand }

// Run is the configuration of this run.
func Run() suite.Config { return current.config }
