package verdict

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/suite"
)

// How many lines of each part are shown, so that all of it together fits on one screen; the rest lies in the artifacts.
const (
	expectedLines, seenLines, hintLines, namesLines, buildLines, messageLines, traceLines, adviceLines = 3, 4, 5, 2, 10, 4, 5, 4
	// evidenceLines is how many lines of evidence are shown in all, evidenceLine how many of one piece of it.
	evidenceLines, evidenceLine = 9, 3
	// fieldsShown is how many differing fields are shown, othersShown how many of the other failed checks say what they saw, and
	// advices how much advice.
	fieldsShown, othersShown, advices = 4, 2, 3
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

// Print writes the answer for a person, so that it fits on one screen: the failure that explains the others in full, with its
// evidence and the first hint, the other failures in short, and what holds in a line.
func Print(w io.Writer, r *Result, lab *course.Lab, hints Hints) {
	p := &printer{screen: newScreen(w), r: r, hints: hints}
	fmt.Fprintf(p.w, "%s  %s\n", p.bold(fmt.Sprintf("Lab %d", r.Lab)), lab.Title)
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
	if r.Trace != "" {
		p.print(p.faint("trace")+" ", fmt.Sprintf("%s (`make trace-%d` tells all)", r.Trace, r.Lab), nil, traceLines)
	}
	for _, advice := range r.Advice[:min(advices, len(r.Advice))] {
		p.print(p.faint("advice")+" ", advice, nil, adviceLines)
	}
}

// PrintOutcome writes one check for a person who waits for the answer: of one that failed, what it saw, and the first hint; one
// that is fixed holds again.
func PrintOutcome(w io.Writer, o Outcome, hints Hints) {
	p := &printer{screen: newScreen(w), r: &Result{Lab: o.Asked}, hints: hints}
	if o.Fixed {
		p.mark(p.green("✓"), p.title(&o.Check, "")+" (failed last time)", p.bold)
		return
	}
	p.mark(p.red("✗"), p.title(&o.Check, o.ID), p.bold)
	p.seen(&o.Check)
	p.hint(&o.Check)
}

// PrintHints writes the first layers of hints for the failure that explains the others, and says how to go on. It returns false
// when there are no more. Code that does not compile has its compiler for a hint.
func PrintHints(w io.Writer, r *Result, hints Hints, layers int) (more bool) {
	p := &printer{screen: newScreen(w), r: r, hints: hints}
	if r.Build != nil {
		p.build()
		return false
	}
	c := r.First()
	p.line("%s", p.bold(p.title(c, "")))
	p.detail("saw", saw(c), expectedLines)
	p.gap()
	for i := range layers {
		p.print(fmt.Sprintf("%d. ", i+1), hints(c.ID, c.Cause, i), nil, noLimit)
	}
	p.gap()
	if more = hints(c.ID, c.Cause, layers) != ""; more {
		p.line("`make hint-%d` again says more.", r.Lab)
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
	if e.Fix == defect {
		p.line("It is a defect of the lab. Please report it with the folder %s", p.artifacts())
		return
	}
	p.line("What fixes it: %s", e.Fix)
	p.line("What the cluster logged: %s", p.artifacts())
}

// source is a place in the output of a compiler.
var source = regexp.MustCompile(`^\S+\.go:\d+`)

// build shows what the compiler said, without the names of packages.
func (p *printer) build() {
	lines := slices.DeleteFunc(strings.Split(p.r.Build.Output, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "# ") || strings.TrimSpace(line) == ""
	})
	what, compiled := "cannot be built", len(lines) > 0 && source.MatchString(lines[0])
	if compiled {
		what = "does not compile"
	}
	p.mark(p.red("✗"), "Your code "+what+", so there was nothing to check:", p.bold)
	p.gap()
	for _, line := range lines[:min(len(lines), buildLines)] {
		p.print("  ", line, nil, messageLines)
	}
	if more := len(lines) - buildLines; more > 0 {
		p.print("  ", fmt.Sprintf("… and %d more lines", more), nil, noLimit)
	}
	p.gap()
	if compiled && len(lines) > 1 {
		p.line("Fix the first line first: the others often follow from it.")
	}
	p.line("%s: none of the %d checks was asked.", p.red("fail"), len(p.r.Checks))
}

// passed lists what holds: each check of the lab, and in a line what earlier labs asked for.
func (p *printer) passed() {
	again := make([]int, p.r.Lab+1)
	for _, c := range p.r.Checks {
		switch {
		case c.State == NotChecked:
			p.mark(p.faint("–"), c.Title+" (not checked here: it needs real Pods)", p.faint)
		case c.Lab == p.r.Lab:
			p.mark(p.green("✓"), c.Title, nil)
		default:
			again[c.Lab]++
		}
	}
	for lab, n := range again {
		if n > 0 {
			p.mark(p.green("✓"), fmt.Sprintf("lab %d still holds (%s)", lab, checks(n)), nil)
		}
	}
	p.gap()
	left, here := p.r.Count(NotChecked), ""
	if left > 0 {
		here = " that can be asked here"
	}
	p.line("%s: all %s%s hold.", p.green("pass"), checks(len(p.r.Checks)-left), here)
	p.notChecked()
}

// notChecked says where the checks are asked that this kind of cluster cannot judge.
func (p *printer) notChecked() {
	if p.r.Count(NotChecked) > 0 {
		p.line("Only kind runs the rest: `make lab-%d CLUSTER=kind`.", p.r.Lab)
	}
}

// failures shows the first failure in full and the rest in short.
func (p *printer) failures() {
	if failed := p.r.failed(); len(failed) > 0 {
		c := failed[0]
		p.mark(p.red("✗"), p.title(c, c.ID), p.bold)
		p.detail("expected", c.Expected, expectedLines)
		p.seen(c)
		p.evidence(c.Evidence)
		p.hint(c)
		p.gap()
		p.others(c, failed[1:])
	}
	p.blocked()
	ids := map[string][]string{}
	for _, c := range p.r.Checks {
		state := string(c.State)
		if c.Load > 0 {
			state = "busy"
		}
		ids[state] = append(ids[state], c.ID)
	}
	p.named(p.green("✓"), ids[string(Passed)], "hold", "holds")
	p.named(p.faint("?"), ids["busy"], "were not judged: this machine was busy", "was not judged: this machine was busy")
	p.named(p.faint("?"), ids[string(NotJudged)], "were not judged: this machine could not do what they need", "was not judged: this machine could not do what it needs")
	p.named(p.faint("–"), ids[string(NotChecked)], "need real Pods and are not checked here", "needs real Pods and is not checked here")
	p.gap()
	p.line("%s: %d of %d checks do not hold yet. `make hint-%d` says more.",
		p.red("fail"), p.r.Count(Failed)+p.r.Count(Blocked), len(p.r.Checks)-p.r.Count(NotChecked), p.r.Lab)
	p.notChecked()
	if p.r.Artifacts != "" { // a container's are gone with it
		p.line("Objects, events and logs: %s", p.artifacts())
	}
}

// title is what a check is about, whether it held before, and its id unless that is "".
func (p *printer) title(c *Check, id string) string {
	title, note := c.Title, id
	switch {
	case c.Regression:
		title = fmt.Sprintf("lab %d held before, and no longer does: %s", c.Lab, title)
	case c.Lab != p.r.Lab:
		note = strings.TrimSuffix(fmt.Sprintf("lab %d again: %s", c.Lab, id), ": ")
	}
	if note != "" {
		title += " (" + note + ")"
	}
	return title
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

// evidence shows what was chosen as far as there is room: the first line of every kind before the second of any.
func (p *printer) evidence(kinds []finding.Evidence) {
	const indent = margin + "  "
	shown, room := make([]string, len(kinds)), evidenceLines
	for i := range evidenceLines {
		for kind, e := range kinds {
			if i >= len(e.Lines) || i > 0 && shown[kind] == "" {
				continue
			}
			lines := p.fold(e.Lines[i], len(indent)+2, evidenceLine)
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

// shared are causes of which one is enough to see: whoever fixes it fixes it for every check.
var shared = []string{suite.CausePanicked, "crashing", "image-pull"}

// sameComplaint says whether two checks saw the same, in more than a word: an error that somebody quotes.
func sameComplaint(a, b *Check) bool { return a.Seen == b.Seen && strings.Contains(b.Seen, " ") }

// others shows the failures beside the first. Those that the first explains are only named.
func (p *printer) others(first *Check, others []*Check) {
	var same, more []string
	shown := 0
	for _, c := range others {
		switch {
		case c.Cause == first.Cause && (ranks[c.Cause] < 0 || slices.Contains(shared, c.Cause) || sameComplaint(c, first)):
			same = append(same, c.ID)
		case shown == othersShown:
			more = append(more, c.ID)
		default:
			shown++
			p.mark(p.red("✗"), p.title(c, c.ID), nil)
			p.detail("saw", saw(c), 2)
		}
	}
	p.named(p.red("✗"), same, "failed for the same reason", "failed for the same reason")
	p.named(p.red("✗"), more, "failed", "failed")
}

// saw is what a check saw, in one line.
func saw(c *Check) string {
	if len(c.Fields) > 0 {
		return c.Fields[0].String()
	}
	return plain.Line(c.Seen)
}

// blocked counts the checks that wait for another one.
func (p *printer) blocked() {
	var roots []string
	waiting, title := map[string]int{}, map[string]string{}
	for _, c := range p.r.Checks {
		title[c.ID] = c.Title
		if c.State == Blocked {
			if waiting[c.BlockedBy]++; waiting[c.BlockedBy] == 1 {
				roots = append(roots, c.BlockedBy)
			}
		}
	}
	for _, root := range roots {
		count := "1 more check needs"
		if n := waiting[root]; n > 1 {
			count = fmt.Sprintf("%d more checks need", n)
		}
		p.mark(p.faint("·"), count+": "+title[root], nil)
	}
}

// named writes a number of checks, and their ids as far as there is room.
func (p *printer) named(sign string, ids []string, plural, singular string) {
	verb := plural
	switch len(ids) {
	case 0:
		return
	case 1:
		verb = singular
	}
	p.print(sign+" ", checks(len(ids))+" "+verb+": "+strings.Join(ids, ", "), nil, namesLines)
}

func checks(n int) string {
	if n == 1 {
		return "1 check"
	}
	return fmt.Sprintf("%d checks", n)
}

// artifacts is the folder of the run, the way from here where that is shorter.
func (p *printer) artifacts() string {
	if here, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(here, p.r.Artifacts); err == nil && filepath.IsLocal(relative) {
			return relative
		}
	}
	return p.r.Artifacts
}
