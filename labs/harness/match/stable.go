package match

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// stablePeriod is how long nothing may change before a Memcached is taken to be at rest: more than a second, because some
	// operators write each second. stableTimeout is how long it may take to come to rest.
	stablePeriod, stableTimeout = 1100 * time.Millisecond, 12 * time.Second
	// maxWrites is how many mutating requests a manager may send about one Memcached in a [env.QuietPeriod] at rest. A loop
	// sends hundreds; an operator that applies again on each pass, a few.
	maxWrites = 10
)

// BeAsBefore wants an [env.State] in which nothing has changed.
func BeAsBefore(before env.State) *Matcher {
	return Make(func(now env.State) error { return now.Since(before) })
}

// ExpectStable waits until neither the Deployment nor the status of the Memcached has changed for a second.
func ExpectStable(ctx context.Context, m env.Memcached) {
	ginkgo.GinkgoHelper()
	changed, err := m.AwaitRest(ctx, stablePeriod, stableTimeout)
	gomega.Expect(err).To(gomega.Succeed())
	gomega.Expect(changed).To(gomega.Succeed())
}

// ExpectUnchanged does something that asks for no work, and holds the manager to it: the Deployment and the status stay as
// they are for a [env.QuietPeriod], hardly any write is sent, and no other object is changed again and again.
func ExpectUnchanged(ctx context.Context, m env.Memcached, act func()) {
	ginkgo.GinkgoHelper()
	before, err := m.State(ctx)
	gomega.Expect(err).To(gomega.Succeed())
	since := env.RequestCount()
	act()
	quiet := func() {
		ginkgo.GinkgoHelper()
		gomega.Consistently(ctx, env.StateOf(m)).WithTimeout(env.QuietPeriod).Should(BeAsBefore(before))
	}
	quiet()
	if n := len(m.Writes(since)); n > maxWrites/2 && n <= maxWrites {
		// A manager that comes back five times a second gets no further on a slow machine. One that is at rest by now
		// sends nothing more.
		quiet()
	}
	gomega.Expect(fewWrites(m, since)).To(gomega.Succeed())
	if other := m.Rewritten(since); other != "" {
		gomega.Expect(finding.New("others-changed", "a pass that finds nothing to do changes nothing", "%s was changed again and again", other)).To(gomega.Succeed())
	}
}

func fewWrites(m env.Memcached, since int) error {
	writes := m.Writes(since)
	if len(writes) <= maxWrites {
		return nil
	}
	return finding.New("too-many-writes", fmt.Sprintf("at most %d writes in %s of rest", maxWrites, env.QuietPeriod),
		"%d, the last of them: %s", len(writes), writes[len(writes)-1])
}
