package course_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// These are about the course itself, not about this package's code.

func TestEveryLabChangesTheOperator(t *testing.T) {
	c := coursetest.Load(t, checkout(t))
	for _, lab := range c.Labs {
		if render(t, c, lab.Number).Diff(render(t, c, lab.Number-1)) == nil {
			t.Errorf("lab %d changes nothing", lab.Number)
		}
	}
}

func TestFinishedOperatorHasNoMarkers(t *testing.T) {
	leftover, c := regexp.MustCompile(`\blab:[0-9]|TODO\(lab|\n\n\n`), coursetest.Load(t, checkout(t))
	for name, file := range render(t, c, len(c.Labs)) {
		if found := leftover.Find(file.Data); found != nil && name != "go.sum" && name != "AGENTS.md" {
			t.Errorf("%s: %q", name, found)
		}
	}
}

// make run has no other flags, and the laptop of a learner may be in a network with others.
func TestOperatorListensOnLoopback(t *testing.T) {
	boundTo, c := regexp.MustCompile(`-bind-address", "(.*?)"`), coursetest.Load(t, checkout(t))
	for number := range len(c.Labs) {
		flags := boundTo.FindAllSubmatch(render(t, c, number)["cmd/main.go"].Data, -1)
		if len(flags) == 0 {
			t.Errorf("stage %d has no such flag", number)
		}
		for _, flag := range flags {
			if address := string(flag[1]); address != "0" && !strings.HasPrefix(address, "127.0.0.1:") {
				t.Errorf("stage %d listens on %s", number, address)
			}
		}
	}
}
