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

// How much of an answer is shown. All of it together fits on one screen; the rest lies in the artifacts.
const (
	// expectedLines and seenLines are how much of what a check expected and saw is shown, hintLines how
	// much of a hint: all of any that is not too long.
	expectedLines, seenLines, hintLines = 3, 4, 5
	// fieldsShown is how many differing fields are shown.
	fieldsShown = 4
	// evidenceLines is how much evidence is shown in all, evidenceLine how much of one line of it.
	evidenceLines, evidenceLine = 9, 3
	// othersShown is how many of the other failed checks say what they saw.
	othersShown = 2
	// namesShown is how many lines of names are shown.
	namesShown = 2
	// buildLines is how many lines of a compiler's output are shown.
	buildLines = 10
)

// Print writes the answer for a person, so that it fits on one screen: the failure that explains the others
// in full, with its evidence and the first hint, the other failures in short, and what holds in a line.
func Print(w io.Writer, r *Result, lab *course.Lab, hints Hints) {
	p := &printer{screen: newScreen(w), r: r, hints: hints}
	p.heading(lab)
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
	p.summary()
}

// PrintOutcome writes one check for a person who waits for the answer: of one that failed, what it saw, and the first
// hint; one that is fixed holds again.
func PrintOutcome(w io.Writer, o Outcome, hints Hints) {
	p := &printer{screen: newScreen(w), r: &Result{Lab: o.Asked}, hints: hints}
	if o.Fixed {
		p.mark(p.green("✓"), p.title(&o.Check)+" (failed last time)", p.bold)
		return
	}
	p.mark(p.red("✗"), p.failed(&o.Check), p.bold)
	p.seen(&o.Check)
	p.hint(&o.Check)
}

// Hints gives the hint for a check that failed for a cause, at a layer that counts from 0, "" when there is none.
// [course.Course.Hint] is one.
type Hints func(check, cause string, layer int) string

// printer writes one result.
type printer struct {
	*screen
	r     *Result
	hints Hints
}

func (p *printer) heading(lab *course.Lab) {
	fmt.Fprintf(p.w, "%s  %s\n", p.bold(fmt.Sprintf("Lab %d", p.r.Lab)), lab.Title)
	about := []string{fmt.Sprintf("%.1f s", p.r.Seconds), fmt.Sprintf("seed %d", p.r.Seed)}
	if c := p.r.Cluster; c.Provider != "" {
		about = append([]string{c.Provider + " " + c.Version}, about...)
	}
	fmt.Fprintln(p.w, p.faint(strings.Join(about, " · ")))
	p.gap()
}

// environment tells what is wrong with the machine. Whatever the checks said does not count.
func (p *printer) environment() {
	e := p.r.Environment
	text := strings.TrimSuffix(e.Finding, " (fix: "+e.Fix+")")
	sign := p.red("!")
	for _, line := range p.fold(text, 2, seenLines) {
		p.mark(sign, line, p.bold)
		sign = " "
	}
	p.gap()
	p.line("Your code was not judged, and this does not count as a try.")
	if e.Fix == defect {
		p.line("It is a defect of the lab. Please report it with the folder " + p.artifacts())
		return
	}
	p.line("What fixes it: " + e.Fix)
	p.line("What the cluster logged: " + p.artifacts())
}

// PrintHints writes the first layers of hints for the failure that explains the others, and says how to go
// on. It returns false when there are no more. Code that does not compile has its compiler for a hint.
func PrintHints(w io.Writer, r *Result, hints Hints, layers int) (more bool) {
	p := &printer{screen: newScreen(w), r: r, hints: hints}
	if r.Build != nil {
		p.build()
		return false
	}
	c := r.First()
	p.line(p.bold(p.title(c)))
	p.detail("saw", saw(c), expectedLines)
	p.gap()
	for i := range layers {
		if text := hints(c.ID, c.Cause, i); text != "" {
			p.print(fmt.Sprintf("%d. ", i+1), text, nil)
		}
	}
	p.gap()
	more = hints(c.ID, c.Cause, layers) != ""
	if more {
		p.line(fmt.Sprintf("`make hint-%d` again says more.", r.Lab))
	} else {
		p.line(fmt.Sprintf("That was all. `make solve-%d` writes the solution into your workspace, and saves yours first.", r.Lab))
	}
	return more
}

// source is a place in the output of a compiler.
var source = regexp.MustCompile(`^\S+\.go:\d+`)

// build shows what the compiler said, without the names of packages.
func (p *printer) build() {
	var lines []string
	for line := range strings.Lines(p.r.Build.Output) {
		if line = strings.TrimRight(line, "\n"); !strings.HasPrefix(line, "# ") && strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	first := len(lines) > 0 && source.MatchString(lines[0])
	what := "does not compile"
	if !first {
		what = "cannot be built"
	}
	p.mark(p.red("✗"), "Your code "+what+", so there was nothing to check:", p.bold)
	p.gap()
	for i, line := range lines[:min(len(lines), buildLines)] {
		style := p.bold
		if i > 0 || !first {
			style = nil
		}
		p.print("  ", line, style)
	}
	if more := len(lines) - buildLines; more > 0 {
		p.line(fmt.Sprintf("  … and %d more lines", more))
	}
	p.gap()
	if first && len(lines) > 1 {
		p.line("Fix the first line first: the others often follow from it.")
	}
	p.line(fmt.Sprintf("%s: none of the %d checks was asked.", p.red("fail"), len(p.r.Checks)))
}

// passed lists what holds: each check of the lab, and in a line what earlier labs asked for.
func (p *printer) passed() {
	again := map[int]int{}
	var earlier []int
	for _, c := range p.r.Checks {
		switch {
		case c.State == NotChecked:
			p.mark(p.faint("–"), c.Title+" (not checked here: it needs real Pods)", p.faint)
		case c.Lab == p.r.Lab:
			p.mark(p.green("✓"), c.Title, nil)
		default:
			if again[c.Lab] == 0 {
				earlier = append(earlier, c.Lab)
			}
			again[c.Lab]++
		}
	}
	for _, lab := range earlier {
		p.mark(p.green("✓"), fmt.Sprintf("lab %d still holds (%s)", lab, checks(again[lab])), nil)
	}
	p.gap()
	p.line(fmt.Sprintf("%s: all %s.", p.green("pass"), holding(p.r)))
	p.lastWord()
}

// lastWord says where the checks are asked that this kind of cluster cannot judge.
func (p *printer) lastWord() {
	if p.r.Count(NotChecked) > 0 {
		p.line(fmt.Sprintf("kind has the last word on the rest: `make lab-%d CLUSTER=kind`.", p.r.Lab))
	}
}

// holding says how many checks there were to hold.
func holding(r *Result) string {
	left := r.Count(NotChecked)
	if left > 0 {
		return checks(len(r.Checks)-left) + " that can be asked here hold"
	}
	return checks(len(r.Checks)) + " hold"
}

// failures shows the first failure in full and the rest in short.
func (p *printer) failures() {
	failed := p.r.failed()
	if len(failed) > 0 {
		p.first(failed[0])
		p.others(failed[0], failed[1:])
	}
	p.blocked()
	p.inLine(p.green("✓"), Passed, "hold", "holds")
	p.inLine(p.faint("–"), NotChecked, "need real Pods and are not checked here", "needs real Pods and is not checked here")
	p.gap()
	open := p.r.Count(Failed) + p.r.Count(Blocked)
	p.line(fmt.Sprintf("%s: %d of %d checks do not hold yet. `make hint-%d` says more.",
		p.red("fail"), open, len(p.r.Checks)-p.r.Count(NotChecked), p.r.Lab))
	p.lastWord()
	if p.r.Artifacts != "" { // a container's are gone with it
		p.line("Objects, events and logs: " + p.artifacts())
	}
}

// title is what a check is about, and whether it held before.
func (p *printer) title(c *Check) string {
	switch {
	case c.Regression:
		return fmt.Sprintf("lab %d held before, and no longer does: %s", c.Lab, c.Title)
	case c.Lab != p.r.Lab:
		return fmt.Sprintf("%s (lab %d again)", c.Title, c.Lab)
	}
	return c.Title
}

// failed is the title of a check that failed, and its id, by which lessons call it.
func (p *printer) failed(c *Check) string {
	if c.Lab != p.r.Lab && !c.Regression {
		return fmt.Sprintf("%s (lab %d again: %s)", c.Title, c.Lab, c.ID)
	}
	return fmt.Sprintf("%s (%s)", p.title(c), c.ID)
}

func (p *printer) first(c *Check) {
	p.mark(p.red("✗"), p.failed(c), p.bold)
	p.detail("expected", c.Expected, expectedLines)
	p.seen(c)
	p.evidence(c.Evidence)
	p.hint(c)
	p.gap()
}

func (p *printer) hint(c *Check) {
	if hint := p.hints(c.ID, c.Cause, 0); hint != "" {
		p.detail("hint", hint, hintLines)
	}
}

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

// evidence shows what was chosen as far as there is room: the first line of every kind before the second of
// any.
func (p *printer) evidence(all []finding.Evidence) {
	const indent = margin + 2
	shown := make([][]string, len(all))
	room := evidenceLines
	for i := range evidenceLines {
		for kind, e := range all {
			if i >= len(e.Lines) {
				continue
			}
			lines := p.fold(e.Lines[i], indent+2, evidenceLine)
			needs := len(lines)
			if i == 0 {
				needs++ // the title
			}
			if needs <= room && (i == 0 || shown[kind] != nil) {
				room -= needs
				shown[kind] = append(shown[kind], strings.Join(lines, "\n"+strings.Repeat(" ", indent+2)))
			}
		}
	}
	for kind, paragraphs := range shown {
		if len(paragraphs) > 0 {
			fmt.Fprintln(p.w, strings.Repeat(" ", margin)+p.faint(all[kind].Title+":"))
		}
		for _, paragraph := range paragraphs {
			fmt.Fprintln(p.w, strings.Repeat(" ", indent)+paragraph)
		}
	}
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
		case c.Cause == first.Cause && (p.r.priority(c) < ownReason || slices.Contains(shared, c.Cause) || sameComplaint(c, first)):
			same = append(same, c.ID)
		case shown == othersShown:
			more = append(more, c.ID)
		default:
			shown++
			p.mark(p.red("✗"), p.failed(c), nil)
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

// blocked folds the checks that wait for another one.
func (p *printer) blocked() {
	waiting := map[string]int{}
	var order []string
	for _, c := range p.r.Checks {
		if c.State != Blocked {
			continue
		}
		if waiting[c.BlockedBy] == 0 {
			order = append(order, c.BlockedBy)
		}
		waiting[c.BlockedBy]++
	}
	for _, by := range order {
		verb := "need"
		if waiting[by] == 1 {
			verb = "needs"
		}
		p.mark(p.faint("·"), fmt.Sprintf("%s %s: %s", moreChecks(waiting[by]), verb, p.titleOf(by)), nil)
	}
}

func (p *printer) titleOf(id string) string {
	for i := range p.r.Checks {
		if p.r.Checks[i].ID == id {
			return p.r.Checks[i].Title
		}
	}
	return id
}

// inLine names the checks in a state.
func (p *printer) inLine(sign string, state State, plural, singular string) {
	var ids []string
	for _, c := range p.r.Checks {
		if c.State == state {
			ids = append(ids, c.ID)
		}
	}
	p.named(sign, ids, plural, singular)
}

// named writes a number of checks, and their ids where they fit.
func (p *printer) named(sign string, ids []string, plural, singular string) {
	if len(ids) == 0 {
		return
	}
	verb := plural
	if len(ids) == 1 {
		verb = singular
	}
	text := checks(len(ids)) + " " + verb
	if full := text + ": " + strings.Join(ids, ", "); len(p.fold(full, 2, len(full))) <= namesShown {
		text = full
	}
	p.mark(sign, text, nil)
}

func checks(n int) string {
	if n == 1 {
		return "1 check"
	}
	return fmt.Sprintf("%d checks", n)
}

func moreChecks(n int) string { return strings.Replace(checks(n), " ", " more ", 1) }

// artifacts is the folder of the run, the way from here where that is shorter.
func (p *printer) artifacts() string {
	here, err := os.Getwd()
	if err != nil {
		return p.r.Artifacts
	}
	if relative, err := filepath.Rel(here, p.r.Artifacts); err == nil && len(relative) < len(p.r.Artifacts) && !strings.HasPrefix(relative, "..") {
		return relative
	}
	return p.r.Artifacts
}
