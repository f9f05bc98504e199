// Package labs_test is the one suite of the course: the checks of every lab, compiled once and selected
// by label. The lab command runs it; `go test` alone has no cluster to judge on and says so.
package labs_test

import (
	"io"
	"log"
	"log/slog"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"

	_ "github.com/example/operator-lab/labs/01-types"
	_ "github.com/example/operator-lab/labs/02-deepcopy"
	_ "github.com/example/operator-lab/labs/03-crd"
	_ "github.com/example/operator-lab/labs/04-reconciler"
	_ "github.com/example/operator-lab/labs/05-owns"
	_ "github.com/example/operator-lab/labs/06-recorder"
	_ "github.com/example/operator-lab/labs/07-rbac"
	_ "github.com/example/operator-lab/labs/08-status"
	_ "github.com/example/operator-lab/labs/09-relations"
	_ "github.com/example/operator-lab/labs/10-outside"
	_ "github.com/example/operator-lab/labs/11-deploy"
	_ "github.com/example/operator-lab/labs/12-admission"
	"github.com/example/operator-lab/labs/harness/env"
)

func TestLabs(t *testing.T) {
	// Libraries write there what a manager has asked for, at any length, and Ginkgo keeps all of it.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(env.EventuallyTimeout)
	SetDefaultEventuallyPollingInterval(env.GomegaPollInterval)
	SetDefaultConsistentlyDuration(env.QuietPeriod)
	SetDefaultConsistentlyPollingInterval(env.GomegaPollInterval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Operator Lab")
}

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	prepared, err := env.SetUp(ctx)
	Expect(err).NotTo(HaveOccurred())
	return prepared
}, func(ctx SpecContext, prepared []byte) {
	Expect(env.Join(ctx, prepared)).To(Succeed())
}, NodeTimeout(env.CheckLimit))

var _ = BeforeEach(func(ctx SpecContext) { env.BeginCheck(ctx) })

var _ = JustAfterEach(env.EndCheck)

var _ = ReportAfterEach(env.WriteResult)

var _ = SynchronizedAfterSuite(func(ctx SpecContext) {
	env.Leave(ctx)
}, func(ctx SpecContext) { env.TearDown(ctx) }, NodeTimeout(4*env.StopTimeout))
