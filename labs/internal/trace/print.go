package trace

import (
	"fmt"
	"io"
	"time"

	"github.com/fatih/color"

	"github.com/example/operator-lab/labs/internal/plain"
)

var faint = color.New(color.Faint).Sprintf

// actorWidth is that of the longest name, replicaset-controller.
const actorWidth = len("replicaset-controller")

// Print writes one line for each action, with the time since begun. Colours are there on a terminal only,
// and not with NO_COLOR.
func Print(w io.Writer, begun time.Time, actions []Action) {
	for _, d := range actions {
		again := ""
		switch {
		case d.Times == 1:
			again = faint("  (once more at %.2f s)", d.Last.Sub(begun).Seconds())
		case d.Times > 1:
			again = faint("  (%d times more until %.2f s)", d.Times, d.Last.Sub(begun).Seconds())
		}
		fmt.Fprintf(w, "   %s  %-*s  %s%s\n", faint("%6.2f s", d.At.Sub(begun).Seconds()), actorWidth, plain.Line(d.Actor), plain.Line(d.String()), again)
	}
}
