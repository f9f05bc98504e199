// Package labs_test is the one suite of the course: the checks of every lab, compiled once and selected
// by label. The lab command runs it; `go test` alone has no cluster to judge on and says so.
package labs_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	_ "github.com/example/operator-lab/labs/01-types"
	_ "github.com/example/operator-lab/labs/02-deepcopy"
	_ "github.com/example/operator-lab/labs/03-crd"
	_ "github.com/example/operator-lab/labs/04-reconciler"
	_ "github.com/example/operator-lab/labs/05-owns"
	_ "github.com/example/operator-lab/labs/06-recorder"
	_ "github.com/example/operator-lab/labs/07-rbac"
	"github.com/example/operator-lab/labs/harness"
)

func TestLabs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Operator Lab")
}

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	prepared, err := harness.SetUp(ctx)
	Expect(err).NotTo(HaveOccurred())
	return prepared
}, func(ctx SpecContext, prepared []byte) {
	Expect(harness.Join(ctx, prepared)).To(Succeed())
}, NodeTimeout(harness.CheckLimit))

var _ = ReportAfterEach(harness.TellOutcome)

var _ = SynchronizedAfterSuite(func(ctx SpecContext) {
	Expect(harness.Leave(ctx)).To(Succeed())
}, harness.TearDown, NodeTimeout(4*harness.StopBudget))
