package main

import (
	"context"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
)

func newProofCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "proof",
		Short: "Everything that can be asked (make proof)",
		Long: `proof asks everything, goes on after a failure, and ends with a table for docs/testing.md, which says what it asks. It needs
Linux, root, gcc, shellcheck and Chromium.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.proof(cmd.Context()) },
	}
}

func (a *app) proof(ctx context.Context) error {
	phases := []phase{
		{"linters", "", asOne(func(ctx context.Context) error {
			lint := exec.CommandContext(ctx, "make", "lint")
			lint.Dir, lint.Stdout, lint.Stderr = a.Root, a.Out, a.Err
			return lint.Run()
		})},
		{"generated files, other platforms", "", asOne(func(ctx context.Context) error { return a.verify(ctx, false) })},
		{"unit tests, race detector", "", a.unitTests([]string{"CGO_ENABLED=1"}, "-race", "-timeout=30m")},
		{"setup", "", a.setUp(8)}, // five clusters of a test, and those of one beside it
	}
	for _, dir := range append(clusterPackages, browserModule, proofPackage, gradePackage, roomPackage) {
		phases = append(phases, phase{dir, "kind, embedded", a.clusterTests(dir)})
	}
	return a.testPhases(ctx, true, append(phases,
		phase{"the operator's own tests", cli.Kind, a.operatorTests},
		phase{"all wrong and right answers", "embedded, kind", a.answers(mutantsRun{all: true, repeat: 1})},
		phase{"each solution 3 times", "embedded, kind", a.answers(mutantsRun{only: "solution", repeat: 3})})...)
}

// asOne counts a phase that either holds as a whole or does not.
func asOne(run func(context.Context) error) func(context.Context) (count, error) {
	return func(ctx context.Context) (count, error) {
		err := run(ctx)
		if err != nil {
			return count{}, err
		}
		return count{passed: 1}, nil
	}
}
