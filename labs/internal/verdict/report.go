package verdict

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
)

// How many lines of each part are shown, so that all of it together fits on one screen; the rest lies in the artifacts.
const (
	expectedLines, seenLines, hintLines, namesLines, buildLines, messageLines = 3, 4, 5, 2, 10, 4
	// evidenceLines is how many lines of evidence are shown in all, evidenceWrap how many a long one may be wrapped into.
	evidenceLines, evidenceWrap = 9, 3
	// fieldsShown is how many differing fields are shown, othersShown how many of the other failed checks say what they saw.
	fieldsShown, othersShown = 4, 2
)

// Hints gives the hint for a check that failed for a cause, at a layer that counts from 0, "" when there is none.
// [course.Course.Hint] is one.
type Hints func(check, cause string, layer int) string

// printer writes one result.
type printer struct {
	*screen
	r     *Result
	hints Hints
}

// Print writes the report, which fits on one screen. The failure that explains the others is shown in full, with its evidence and the
// first hint. The other failures are short, and the checks that pass take a line.
func Print(w io.Writer, r *Result, lab *course.Lab, hints Hints) {
	p := &printer{screen: newScreen(w), r: r, hints: hints}
	fmt.Fprintf(p.w, "%s  %s\n", p.bold(strings.Replace(course.Name(r.Lab), "lab", "Lab", 1)), lab.Title)
	about := fmt.Sprintf("%.1f s · seed %d", r.Seconds, r.Seed)
	if r.Cluster.Provider != "" {
		about = r.Cluster.Provider + " " + r.Cluster.Version + " · " + about
	}
	fmt.Fprintln(p.w, p.faint(about))
	p.gap()
	switch {
	case r.Verdict == Environment:
		p.environment()
	case r.Build != nil:
		p.build()
	case r.Verdict == Pass:
		p.passed()
	default:
		p.failures()
	}
	if r.Artifacts == "" || r.Build != nil { // a container that judged has taken its artifacts with it
		return
	}
	if r.Verdict != Pass {
		p.line("Objects, events and logs: %s", plain.Path(r.Artifacts))
	}
	if r.Verdict != Environment && lab.Has(course.SetupManager) {
		p.line("Who did what when: `make trace-%d`", r.Lab)
	}
}

// PrintHints writes the first layers of hints for the failure that explains the others, and says how to go on. It returns false
// when there are no more. For code that does not compile, it shows what the compiler said.
func PrintHints(w io.Writer, r *Result, hints Hints, layers int) (more bool) {
	p := &printer{screen: newScreen(w), r: r, hints: hints}
	if r.Build != nil {
		p.build()
		return false
	}
	c := r.First()
	p.line("%s", p.bold(p.title(c)))
	p.detail("saw", saw(c), expectedLines)
	p.gap()
	for i := range layers {
		p.print(fmt.Sprintf("%d. ", i+1), hints(c.ID, c.Cause, i), nil, noLimit)
	}
	p.gap()
	if more = hints(c.ID, c.Cause, layers) != ""; more {
		p.line("`make hint-%s` again says more.", r.step())
	} else if r.Lab < 0 {
		p.line("That was all. `make solution-%s FORCE=1` shows two ways to do it.", r.step())
	} else {
		p.line("That was all. `make solve-%d` writes the solution into your workspace, and saves yours first.", r.Lab)
	}
	return more
}

// environment tells what is wrong with the machine. Whatever the checks said does not count.
func (p *printer) environment() {
	e := p.r.Environment
	p.print(p.red("!")+" ", strings.TrimSuffix(e.Finding, " (fix: "+e.Fix+")"), p.bold, seenLines)
	p.gap()
	p.line("Your code was not judged, and this does not count as a try.")
	p.line("What fixes it: %s", e.Fix)
}

// build shows what the compiler said, without the names of packages.
func (p *printer) build() {
	lines := slices.DeleteFunc(strings.Split(p.r.Build.Output, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "# ") || strings.TrimSpace(line) == ""
	})
	p.mark(p.red("✗"), "Your code cannot be built, so there was nothing to check:", p.bold)
	p.gap()
	for _, line := range lines[:min(len(lines), buildLines)] {
		p.print("  ", line, nil, messageLines)
	}
	p.gap()
	if len(lines) > 1 {
		p.line("%d lines in all. Fix the first one first: the others often follow from it.", len(lines))
	}
	p.line("%s: none of the %d checks ran.", p.red("fail"), len(p.r.Checks))
}

// passed lists what holds.
func (p *printer) passed() {
	for _, c := range p.r.Checks {
		switch {
		case c.State == NotChecked:
			lacks, _ := p.elsewhere()
			p.mark(p.faint("–"), c.Title+" (not checked here: it needs "+lacks+")", p.faint)
		case c.Lab == p.r.Lab:
			p.mark(p.green("✓"), c.Title, nil)
		default:
			p.mark(p.green("✓"), fmt.Sprintf("lab %d still holds: %s", c.Lab, c.Title), nil)
		}
	}
	p.gap()
	left, here := p.r.Count(NotChecked), ""
	if left > 0 {
		here = " that can run here"
	}
	p.line("%s: all %d checks%s hold.", p.green("pass"), len(p.r.Checks)-left, here)
	p.notChecked()
}

// notChecked says where the checks run that this kind of cluster cannot judge.
func (p *printer) notChecked() {
	if p.r.Count(NotChecked) > 0 {
		_, other := p.elsewhere()
		p.line("Only %s runs the rest: `make lab-%d CLUSTER=%s`.", other, p.r.Lab, other)
	}
}

// elsewhere is what the cluster lacks for the checks that it cannot judge, and the kind of cluster that has it.
func (p *printer) elsewhere() (lacks, other string) {
	if p.r.Cluster.Provider == "kind" {
		return "an API server outside of a container", "embedded"
	}
	return "real Pods", "kind"
}

// failures shows the first failure in full and the rest in short.
func (p *printer) failures() {
	if failed := p.r.failed(); len(failed) > 0 {
		c := failed[0]
		p.mark(p.red("✗"), p.title(c), p.bold)
		p.detail("expected", c.Expected, expectedLines)
		p.seen(c)
		p.evidence(c.Evidence)
		p.hint(c)
		p.gap()
		p.others(c, failed[1:])
	}
	var groups []string
	ids := map[string][]string{}
	for _, c := range p.r.Checks {
		if c.State != Failed {
			group := p.group(c)
			if ids[group] == nil {
				groups = append(groups, group)
			}
			ids[group] = append(ids[group], c.ID)
		}
	}
	for _, group := range groups {
		p.named(group, ids[group])
	}
	p.gap()
	text := fmt.Sprintf("%s: %d of %d checks failed", p.red("fail"), p.r.Count(Failed), len(p.r.Checks)-p.r.Count(NotChecked))
	if waiting := p.r.Count(Blocked); waiting > 0 {
		text += fmt.Sprintf(", %d blocked", waiting)
	}
	p.line("%s. `make hint-%s` says more.", text, p.r.step())
	p.notChecked()
}

// group is the state of a check that did not fail, behind a sign.
func (p *printer) group(c Check) string {
	lacks, _ := p.elsewhere()
	switch {
	case c.State == Passed:
		return p.green("✓") + " pass"
	case c.State == Blocked:
		return p.faint("·") + " blocked by " + c.BlockedBy
	case c.State == NotChecked:
		return p.faint("–") + " not checked, as they need " + lacks
	case c.Load > 0:
		return p.faint("?") + " not judged, as this machine was busy"
	default:
		return p.faint("?") + " not judged, as this machine could not do what they need"
	}
}

// title is what a check is about, with its id.
func (p *printer) title(c *Check) string {
	if c.Lab != p.r.Lab {
		return fmt.Sprintf("%s (lab %d again: %s)", c.Title, c.Lab, c.ID)
	}
	return fmt.Sprintf("%s (%s)", c.Title, c.ID)
}

func (p *printer) hint(c *Check) { p.detail("hint", p.hints(c.ID, c.Cause, 0), hintLines) }

// seen shows what a check saw: the fields that differ, under the words that introduce them, or else the words.
func (p *printer) seen(c *Check) {
	if len(c.Fields) == 0 {
		p.detail("saw", c.Seen, seenLines)
		return
	}
	label := "saw"
	if head, _, _ := strings.Cut(c.Seen, "\n"); strings.HasSuffix(head, ":") {
		p.detail(label, head, 1)
		label = ""
	}
	for _, f := range c.Fields[:min(len(c.Fields), fieldsShown)] {
		p.detail(label, f.String(), 2)
		label = ""
	}
	if more := len(c.Fields) - fieldsShown; more > 0 {
		p.detail("", fmt.Sprintf("and %d more", more), 1)
	}
}

// evidence shows as much evidence as there is room for: the first line of every kind before the second of any.
func (p *printer) evidence(kinds []finding.Evidence) {
	const indent = margin + "  "
	shown, room := make([]string, len(kinds)), evidenceLines
	for i := range evidenceLines {
		for kind, e := range kinds {
			if i >= len(e.Lines) || i > 0 && shown[kind] == "" {
				continue
			}
			lines := p.fold(e.Lines[i], len(indent)+2, evidenceWrap)
			text := indent + strings.Join(lines, "\n  "+indent) + "\n"
			if i == 0 {
				text, lines = margin+p.faint(e.Title+":")+"\n"+text, append(lines, "")
			}
			if len(lines) <= room {
				room -= len(lines)
				shown[kind] += text
			}
		}
	}
	fmt.Fprint(p.w, strings.Join(shown, ""))
}

// others shows the failures beside the first. Those that the first explains are only named.
func (p *printer) others(first *Check, others []*Check) {
	var same, more []string
	shown := 0
	for _, c := range others {
		switch {
		case c.Cause == first.Cause && (c.Cause != finding.CauseOther || c.Seen == first.Seen):
			same = append(same, c.ID)
		case shown == othersShown:
			more = append(more, c.ID)
		default:
			shown++
			p.mark(p.red("✗"), p.title(c), nil)
			p.detail("expected", c.Expected, 1)
			p.detail("saw", saw(c), 2)
		}
	}
	p.named(p.red("✗")+" fail for the same reason", same)
	p.named(p.red("✗")+" fail", more)
}

// saw is what a check saw, in one line.
func saw(c *Check) string {
	if len(c.Fields) > 0 {
		return c.Fields[0].String()
	}
	return plain.Line(c.Seen)
}

// named writes the state of some checks, and their ids as far as there is room.
func (p *printer) named(what string, ids []string) {
	if len(ids) > 0 {
		sign, text, _ := strings.Cut(what, " ")
		p.print(sign+" ", text+": "+strings.Join(ids, ", "), nil, namesLines)
	}
}
