package env

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2"

	"github.com/example/operator-lab/labs/internal/suite"
)

// The priorities of checks, as Ginkgo's decorators: a check with a higher one begins earlier.
const (
	// First is for a check that explains others.
	First = ginkgo.SpecPriority(10)
	// Long is for a check that takes longer than others, mostly waiting. It is given up when another check has failed.
	Long = ginkgo.SpecPriority(5)
	// Last is for a check that takes much of the machine. It does not begin when another check has failed.
	Last = ginkgo.SpecPriority(-1)
)

// Lab decorates the container with the checks of lab n.
func Lab(n int) ginkgo.Labels { return ginkgo.Label(fmt.Sprintf("%s%d", suite.LabLabel, n)) }

// Check decorates the spec that is one check. id stands in lab.yaml. A check is bounded by [CheckLimit]. One that failed
// last time begins first, unless it is [Last].
func Check(id string, priority ...ginkgo.SpecPriority) []any {
	decorators := []any{ginkgo.Label(suite.CheckLabel + id), ginkgo.NodeTimeout(CheckLimit)}
	for _, p := range priority {
		decorators = append(decorators, p)
	}
	config, _ := suite.ReadConfig() // SetUp reports an error of this
	if slices.Contains(config.Failing, id) && !slices.Contains(priority, Last) {
		decorators = append(decorators, First)
	}
	return decorators
}

// BeginCheck prepares the manager for a check. The suite calls it before each of them.
func BeginCheck(ctx context.Context) {
	ginkgo.GinkgoHelper()
	TakeReport() // of the check before
	ginkgo.DeferCleanup(func() error {
		current.place.leave()
		return publish(ended)
	})
	if by := unasked(status(), ginkgo.CurrentSpecReport()); by != "" {
		failWith(blocked(by))
	}
	if current.env != nil {
		require(current.env.restore(ctx, lab()))
	}
	current.begun = RequestCount()
	require(publish(begun))
}

// EndCheck fails a check that has passed if its manager exited meanwhile, because where nothing runs, nothing goes wrong, or
// if the manager asked for so much that not all of it is known. The suite calls it after each check.
func EndCheck() {
	ginkgo.GinkgoHelper()
	if ginkgo.CurrentSpecReport().Failed() || len(current.place.memcacheds()) == 0 {
		return
	}
	if gone := status().Gone; gone != nil {
		failWith(gone)
	}
	if f := remembered(current.begun); f != nil {
		failWith(f)
	}
}

// checkID is the id of the check that is running.
func checkID() string { return label(suite.CheckLabel) }

// lab is the number of its lab, 0 when none is running.
func lab() int {
	n, _ := strconv.Atoi(label(suite.LabLabel))
	return n
}

// label is what follows a prefix in a label of the running check.
func label(prefix string) string {
	for _, label := range ginkgo.CurrentSpecReport().Labels() {
		if rest, ok := strings.CutPrefix(label, prefix); ok {
			return rest
		}
	}
	return ""
}

// Rand is the running check's source. What it gives depends on the run's seed and the check's id alone,
// so that a printed seed replays the same values in any order of checks.
func Rand() *rand.Rand {
	if id := checkID(); current.randOf != id {
		h := fnv.New64a()
		h.Write([]byte(id))
		current.randOf, current.rand = id, rand.New(rand.NewPCG(uint64(current.config.Seed), h.Sum64()))
	}
	return current.rand
}

// Run is the configuration of this run.
func Run() suite.Config { return current.config }
