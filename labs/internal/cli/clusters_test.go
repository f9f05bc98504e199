package cli_test

import (
	"strings"
	"testing"

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
	} {
		t.Run(name, func(t *testing.T) {
			a, _, progress := clitest.New(t)
			if !test.engine {
				t.Setenv("PATH", t.TempDir())
			}
			a.Cluster, a.NodeImage, a.Yes = test.cluster, test.nodeImage, test.yes
			for range 2 {
				if got := a.Chosen(t.Context()); got != test.want {
					t.Errorf("chosen() = %s, want %s", got, test.want)
				}
			}
			if said := strings.Count(progress.String(), "make setup"); said != map[bool]int{true: 1}[test.says] {
				t.Errorf("it names what brings up an engine %d times:\n%s", said, progress)
			}
		})
	}
}
