package main

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
)

func TestEmbeddedWithoutEngine(t *testing.T) {
	for name, test := range map[string]struct {
		engine             bool
		cluster, nodeImage string
		want               string
		says, yes          bool
	}{
		"an engine answers":              {true, cli.Auto, "", cli.Kind, false, false},
		"none answers":                   {false, cli.Auto, "", cli.Embedded, true, false},
		"none answers, and one may come": {false, cli.Auto, "", cli.Kind, false, true},
		"kind is asked for":              {false, cli.Kind, "", cli.Kind, false, false},
		"a node image is asked for":      {false, cli.Auto, "my/node:v1", cli.Kind, false, false},
		"embedded is asked for":          {true, cli.Embedded, "", cli.Embedded, false, false},
		"embedded, and none answers too": {false, cli.Embedded, "", cli.Embedded, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, progress := newTestApp(t)
			if !test.engine {
				t.Setenv("PATH", t.TempDir())
			}
			a.Cluster, a.NodeImage, a.Yes = test.cluster, test.nodeImage, test.yes
			for range 2 {
				if got := a.Chosen(t.Context()); got != test.want {
					t.Errorf("chosen() = %s, want %s", got, test.want)
				}
			}
			lines := strings.Count(progress.String(), "\n")
			if want := map[bool]int{true: 1}[test.says]; lines != want {
				t.Errorf("%d lines about it, want %d:\n%s", lines, want, progress)
			}
			if test.says && (!strings.Contains(progress.String(), "checks that need them are left out") || !strings.Contains(progress.String(), "make setup")) {
				t.Errorf("%q does not say what it means and what fixes it", progress)
			}
		})
	}
}

func TestDownRemovesEveryProvider(t *testing.T) {
	a, out, _ := newTestApp(t)
	kind := clitest.Pretend(t, &a.App, "up", true)
	processes, err := clitest.Manager(t, &a.App, embedded.Identity).Create(t.Context(), clusters.Spec{Label: "up", Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.down(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{kind.Name, processes.Name} {
		if !strings.Contains(out.String(), "\n"+name) || !strings.Contains(out.String(), "Removed cluster "+name) {
			t.Errorf("%s is not both listed and removed:\n%s", name, out)
		}
	}
	if left := clitest.Recorded(t, &a.App); len(left) > 0 {
		t.Errorf("records left: %v", left)
	}
}
