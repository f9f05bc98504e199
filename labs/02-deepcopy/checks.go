// Package deepcopy holds the checks of lab 2: the generated code, and what copies share when it runs.
package deepcopy

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/example/operator-lab/labs/harness"
)

var _ = harness.Lab(2, func() {
	harness.Check("deepcopy-generated", func(ctx SpecContext) {
		generator, err := harness.Generator(ctx)
		harness.Require(err)
		code, err := generator.DeepCopy(ctx)
		harness.Require(err)
		harness.Require(hasGenerated(harness.Run().Workspace, code))
	})

	harness.Check("copy-shares-nothing", func(ctx SpecContext) {
		reports, err := harness.ProbeCopies(ctx)
		harness.Require(err)
		harness.Require(sharesNothing("Memcached", reports["Memcached"], "Status.Conditions"))
	}, NodeTimeout(probeTimeout))

	harness.Check("list-copy-shares-nothing", func(ctx SpecContext) {
		reports, err := harness.ProbeCopies(ctx)
		harness.Require(err)
		harness.Require(sharesNothing("MemcachedList", reports["MemcachedList"], "Items", "Items[].Status.Conditions"))
	}, NodeTimeout(probeTimeout))
})

// probeTimeout leaves room for a first compilation of the learner's modules and for a program that
// never ends.
const probeTimeout = harness.BuildLimit + harness.ProgramLimit + harness.StopBudget
