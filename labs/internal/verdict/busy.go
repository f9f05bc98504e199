package verdict

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/example/operator-lab/clusters"
)

// busy is a *clusters.Problem when nothing has failed for certain, and the time of a check has run out while this machine was
// busy.
func busy(checks []Check, numbers []int) error {
	var late []string
	var load float64
	for _, c := range checks {
		switch c.State {
		case Failed:
			return nil
		case NotJudged:
			late, load = append(late, c.ID), max(load, c.Load)
		}
	}
	if len(late) == 0 {
		return nil
	}
	slices.Sort(late)
	return &clusters.Problem{
		What: fmt.Sprintf("this machine was busy: its load average was %.0f on %d processors when the time of %s ran out",
			load, runtime.NumCPU(), strings.Join(late, ", ")),
		Fix: "close other programs (top shows which), then " + again(numbers),
	}
}
