package main

import (
	"os"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/share"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// root is the checkout.
const root = "../../../.."

func TestBoardRefusesAddresses(t *testing.T) {
	for address, says := range map[string]string{"203.0.113.5": "no address of this machine", "localhost": "no IPv4 address", "0.0.0.0": "no IPv4 address"} {
		shared, _, _ := clitest.New(t)
		if err := (&app{*shared}).serve(t.Context(), address, 7777); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestUpRefuses(t *testing.T) {
	for says, tc := range map[string]struct {
		n                int
		cluster, address string
	}{
		"N=12": {0, cli.Auto, loopback}, "no address of this machine": {2, cli.Auto, "203.0.113.5"}, "root": {2, cli.Kind, "127.0.0.2"},
		"free memory for N=": {1 << 20, cli.Auto, loopback},
	} {
		shared, _, _ := clitest.New(t)
		shared.Cluster = tc.cluster
		if err := (&app{*shared}).up(t.Context(), tc.n, tc.address); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %s", tc, err, says)
		}
	}
}

func TestJoinGivesTheNextFreeCluster(t *testing.T) {
	shared, _, _ := clitest.New(t)
	a := &app{*shared}
	owned, spec := clitest.Manager(t, shared, cli.Embedded), clusters.Spec{Label: cli.LearnerLabel, Keep: true}
	if err := fill(t.Context(), owned, spec, []string{"learner-1", "no name", "learner-2", "learner-3"}); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("one that cannot be made: %v", err)
	}
	for name, address := range map[string]string{"learner-1": "192.168.1.5", "learner-2": loopback, "learner-3": loopback} {
		if err := os.WriteFile(a.file(name, "kubeconfig"), []byte(name+" https://"+address+":1"), 0o600); err != nil {
			t.Fatal(err) // also when fill has given up
		}
	}
	join := a.offer(t.Context(), share.Site{Folder: a.share()}, loopback)
	for _, tc := range []struct{ name, cluster string }{{"Ana", "learner-2"}, {"Bob", "learner-3"}, {"Cyd", ""}, {"ana", "learner-2"}} {
		answer, err := join(tc.name)
		if cluster, _, _ := strings.Cut(string(answer.Kubeconfig), " "); err != nil || cluster != tc.cluster {
			t.Errorf("%s: %q, %v", tc.name, answer.Kubeconfig, err)
		}
	}
}
