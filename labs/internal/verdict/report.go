package verdict

import (
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"

	"github.com/example/operator-lab/labs/internal/course"
)

// Print writes the answer for a person: each check in one line, and for the ones that failed what was
// expected, what was seen, and the first hint.
func Print(w io.Writer, r *Result, lab *course.Lab, hints Hints) {
	p := printer{w}
	p.line("%s  %s", bold("Lab %d", r.Lab), lab.Title)
	p.line("%s", faint("%s %s · %.1f s · seed %d", r.Cluster.Provider, r.Cluster.Version, r.Seconds, r.Seed))
	p.line("")
	if r.Build != nil {
		p.build(r.Build)
		return
	}
	p.checks(r, lab, hints)
	p.line("")
	p.summary(r)
}

// Hints finds the hint for a failed check.
type Hints interface {
	// Hint is the text for the check and cause at a layer that counts from 0, "" when there is none.
	Hint(check, cause string, layer int) string
}

// CourseHints are the hints of the course's manifests.
type CourseHints struct{ Course *course.Course }

// Hint gives the layer of the cause's hints, or of the cause "other" when lab.yaml has none for it.
func (h CourseHints) Hint(check, cause string, layer int) string {
	_, c, err := h.Course.Check(check)
	if err != nil {
		return ""
	}
	layers, ok := c.Hints[cause]
	if !ok {
		layers = c.Hints[course.OtherCause]
	}
	if layer < 0 || layer >= len(layers) {
		return ""
	}
	return layers[layer]
}

var (
	bold  = color.New(color.Bold).Sprintf
	faint = color.New(color.Faint).Sprintf
	green = color.New(color.FgGreen).Sprintf
	red   = color.New(color.FgRed).Sprintf
)

type printer struct{ w io.Writer }

func (p printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p printer) build(b *Build) {
	p.line("%s your code does not compile, so there was nothing to check:", red("✗"))
	p.block("", b.Output)
}

func (p printer) checks(r *Result, lab *course.Lab, hints Hints) {
	for _, c := range r.Checks {
		again := ""
		if c.Lab != lab.Number {
			again = faint("  (lab %d again)", c.Lab)
		}
		switch c.State {
		case Passed:
			p.line("  %s %s%s", green("✓"), c.Title, again)
		case NotChecked:
			p.line("  %s %s%s", faint("–"), c.Title, faint("  not checked here: needs real Pods"))
		case Blocked:
			p.line("  %s %s%s", faint("·"), c.Title, faint("  waits for %s", c.BlockedBy))
		case Failed:
			p.line("  %s %s%s", red("✗"), c.Title, again)
			p.block("expected", c.Expected)
			p.block("saw", c.Seen)
			if hint := hints.Hint(c.ID, c.Cause, 0); hint != "" {
				p.block("hint", hint)
			}
		}
	}
}

// block writes text under a label, indented.
func (p printer) block(label, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		p.line("      %-9s %s", label, strings.TrimRight(line, "\n"))
		label = ""
	}
}

func (p printer) summary(r *Result) {
	open := r.Count(Failed) + r.Count(Blocked)
	judged := len(r.Checks) - r.Count(NotChecked)
	switch r.Verdict {
	case Pass:
		p.line("%s All %d checks hold.", green("pass"), judged)
	case Fail:
		p.line("%s %d of %d checks do not hold yet. `make hint-%d` says more; the evidence is in %s", red("fail"), open, judged, r.Lab, r.Artifacts)
	case Environment:
		p.line("%s %s", red("environment"), r.Environment.Finding)
		p.line("This is not your code's fault. What mends it: %s", r.Environment.Mend)
		p.line("The evidence is in %s", r.Artifacts)
	}
}
