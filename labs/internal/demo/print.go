package demo

import (
	"fmt"
	"strings"

	"github.com/fatih/color"
)

var (
	bold  = color.New(color.Bold).Sprintf
	faint = color.New(color.Faint).Sprintf
	cyan  = color.New(color.FgCyan).Sprintf
)

// lineWidth is how long lines of prose may become.
const lineWidth = 80

func (s Stage) announce(n int, what step) {
	fmt.Fprintf(s.Out, "\n%s\n\n", bold("%d  %s", n, what.Title))
	if what.Command != "" {
		fmt.Fprintf(s.Out, "   %s\n", cyan("$ %s", strings.ReplaceAll(what.Command, "\n", "\n     ")))
	}
}

// paragraph breaks a text into lines, in a given style.
func (s Stage) paragraph(indent string, style func(string, ...any) string, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if len(indent)+len(line)+len(word) >= lineWidth {
			fmt.Fprintf(s.Out, "%s%s\n", indent, style("%s", line))
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		fmt.Fprintf(s.Out, "%s%s\n", indent, style("%s", line))
	}
}
