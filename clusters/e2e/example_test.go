package e2e_test

import (
	"log"
	"os"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/e2e"
)

// TestMain of a package of end-to-end tests. The folder example has a whole one.
func ExampleNew() {
	_ = func(m *testing.M) {
		// The same folder and name in each run: a run removes what an earlier one left that was killed.
		const state, name = "/var/tmp/my-tests", "my-tests"
		manager, err := clusters.New(state)
		if err != nil {
			log.Fatal(err)
		}
		provider := e2e.New(manager)
		testenv := env.New()
		testenv.Setup(envfuncs.CreateCluster(provider, name))
		testenv.Finish(envfuncs.DestroyCluster(name))
		os.Exit(testenv.Run(m))
	}
}
