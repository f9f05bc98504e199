package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fatih/color"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/trace"
)

var (
	bold  = color.New(color.Bold).Sprintf
	faint = color.New(color.Faint).Sprintf
	cyan  = color.New(color.FgCyan).Sprintf
)

// lineWidth is how long lines of prose may become.
const lineWidth = 96

// printer writes the timeline for a person. Colours are there on a terminal only, and not with NO_COLOR.
type printer struct{ w io.Writer }

func (p printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p printer) opening(c *clusters.Cluster) {
	p.line("%s", bold("The finished operator at work"))
	p.line("%s", faint("%s, Kubernetes %s. The operator runs as a process on this machine.", c.Name, c.Version))
}

func (p printer) announce(n int, s step) {
	p.line("\n%s\n", bold("%d  %s", n, s.title))
	prompt := "$ "
	for line := range strings.Lines(s.command) {
		p.line("   %s", cyan("%s%s", prompt, strings.TrimRight(line, "\n")))
		prompt = "  "
	}
}

// actions writes one line for each action, with the time since begun.
func (p printer) actions(begun time.Time, actions []trace.Action) { trace.Print(p.w, begun, actions) }

// quote writes somebody's own words.
func (p printer) quote(words string) { p.line("   %s", bold("%s", plain.Text(words))) }

// wait says why nothing happens.
func (p printer) wait(whileWaiting string) {
	if whileWaiting != "" {
		p.paragraph(whileWaiting, faint)
	}
}

func (p printer) explain(s step) { p.line(""); p.paragraph(s.why, fmt.Sprintf) }

func (p printer) closing() {
	p.line("\nThis is what you are going to write, from labs/01-types/README.md on: `make lab-1`.")
}

// reason stands below the text of an answer.
func (p printer) reason(format string, args ...any) {
	p.wrapped("      ", fmt.Sprintf(format, args...), fmt.Sprintf)
}

// paragraph breaks text into lines, in a given style.
func (p printer) paragraph(text string, style func(string, ...any) string) {
	p.wrapped("   ", text, style)
}

func (p printer) wrapped(indent, text string, style func(string, ...any) string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if len(indent)+len(line)+len(word) >= lineWidth {
			p.line("%s%s", indent, style("%s", line))
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	p.line("%s%s", indent, style("%s", line))
}
