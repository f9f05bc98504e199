package verdict

import (
	"context"
	"slices"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
	"github.com/example/operator-lab/labs/internal/process"
)

// fenced is a provider without clusters that remembers what fences were asked for.
type fenced struct {
	clitest.Provider
	forOthers bool
	isolated  []string
}

func (f *fenced) Create(_ context.Context, name string, spec clusters.Spec) (*clusters.Cluster, error) {
	f.forOthers = spec.ForOthers
	return &clusters.Cluster{Name: name, Kubeconfig: "/nowhere"}, nil
}

func (f *fenced) IsolatePods(_ context.Context, name string) error {
	f.isolated = append(f.isolated, name)
	return nil
}

// Each fence is tested where it is built. Here it matters that code which nobody trusts has them, and other code does not.
func TestWhoIsNotTrustedIsFencedIn(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		var launcher *process.Launcher
		if !trusted {
			launcher = &process.Launcher{}
		}
		provider := &fenced{}
		judge := Judge{Clusters: clusters.NewOwned(t.TempDir(), provider), Launcher: launcher, Progress: func(string) {}}
		r := &run{Judge: &judge}
		if err := r.takeCluster(t.Context()); err != nil {
			t.Fatal(err)
		}
		if provider.forOthers == trusted {
			t.Errorf("trusted %v: the API server may call others: %v", trusted, !provider.forOthers)
		}
		judge.Cluster = &clusters.Cluster{Name: "kind", RealPods: true}
		if err := (&run{Judge: &judge}).takeCluster(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(provider.isolated, "kind"); got == trusted {
			t.Errorf("trusted %v: its Pods are kept from networks: %v", trusted, got)
		}
	}
}
