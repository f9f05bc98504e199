package reference

import (
	"fmt"
	"io"

	"github.com/fatih/color"
)

var (
	bold  = color.New(color.Bold).Sprint
	faint = color.New(color.Faint).Sprint
	red   = color.New(color.FgRed).Sprint
	green = color.New(color.FgGreen).Sprint
	cyan  = color.New(color.FgCyan).Sprint
)

// Print writes the differences as a unified diff, with the reasons between its hunks. Colours are there
// on a terminal only, and not with NO_COLOR.
func Print(w io.Writer, files []File) {
	for _, f := range files {
		switch {
		case !f.Ours:
			fmt.Fprintf(w, "%s\n\n", bold("only yours: ", f.Path))
			continue
		case !f.Yours:
			fmt.Fprintf(w, "%s\n", bold("only ours: ", f.Path))
		default:
			fmt.Fprintf(w, "%s\n", bold("--- yours/", f.Path))
			fmt.Fprintf(w, "%s\n", bold("+++ ours/", f.Path))
		}
		for _, h := range f.Hunks {
			h.print(w)
		}
		fmt.Fprintln(w)
	}
}

func (h Hunk) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n", cyan(fmt.Sprintf("@@ -%s +%s @@", place(h.Yours, h.count('-')), place(h.Ours, h.count('+')))))
	for _, reason := range h.Reasons {
		fmt.Fprintf(w, "%s\n", faint("# ", reason))
	}
	for _, line := range h.Lines {
		switch line[0] {
		case '-':
			fmt.Fprintln(w, red(line))
		case '+':
			fmt.Fprintln(w, green(line))
		default:
			fmt.Fprintln(w, line)
		}
	}
}

// place is where the lines of one side stand, in the way of a unified diff: none stand behind line 0.
func place(first, lines int) string {
	if lines == 0 {
		first--
	}
	return fmt.Sprintf("%d,%d", first, lines)
}

// count is how many lines of the hunk one side has.
func (h Hunk) count(side byte) int {
	n := 0
	for _, line := range h.Lines {
		if line[0] == side || line[0] == ' ' {
			n++
		}
	}
	return n
}
