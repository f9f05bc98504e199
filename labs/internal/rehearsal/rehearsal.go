// Package rehearsal asks on the evening before what would otherwise go wrong in front of a room. A rehearsal is a list of
// checks; each says what it found and, where something is wrong, the command that mends it.
package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters"
)

// Mark says what a finding means.
type Mark string

// The marks of findings. They are symbols, so that they can be told apart without colour.
const (
	// Fine: it works.
	Fine Mark = "✓"
	// Doubtful: the room works, and there is something to look at before it begins.
	Doubtful Mark = "!"
	// Wrong: the room would not work.
	Wrong Mark = "✗"
	// Untried: it could not be tried, because of something that is wrong.
	Untried Mark = "·"
)

// Finding is what a check found.
type Finding struct {
	// Check is the name of the check that found it; [Play] fills it in.
	Check string
	Mark  Mark
	// Detail is one line: what was seen.
	Detail string
	// Mend is the command that mends it, "" where there is nothing to mend or no command that could.
	Mend string
}

// Good is a finding that nothing is wrong.
func Good(format string, args ...any) Finding {
	return Finding{Mark: Fine, Detail: fmt.Sprintf(format, args...)}
}

// Doubt is a finding of something to look at; mend is the command that mends it.
func Doubt(mend, format string, args ...any) Finding {
	return Finding{Mark: Doubtful, Detail: fmt.Sprintf(format, args...), Mend: mend}
}

// Bad is a finding that the room would not work; mend is the command that mends it.
func Bad(mend, format string, args ...any) Finding {
	return Finding{Mark: Wrong, Detail: fmt.Sprintf(format, args...), Mend: mend}
}

// Failed is the finding that something could not be done. What is wrong with the machine names its own command; mend is
// for everything else.
func Failed(err error, mend string) Finding {
	text := err.Error()
	if p, ok := errors.AsType[*clusters.Problem](err); ok {
		text = p.Finding()
		if p.Mend != "" {
			mend = p.Mend
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	return Finding{Mark: Wrong, Detail: strings.TrimSpace(line), Mend: mend}
}

// nameWidth is how much room the names of checks have.
const nameWidth = 11

// String is one line: the mark, the check, what was seen, and the command that mends it.
func (f Finding) String() string {
	line := fmt.Sprintf("%s %-*s %s", f.Mark, nameWidth, f.Check, f.Detail)
	if f.Mend != "" {
		line += "  ->  " + f.Mend
	}
	return line
}

// Check is one question.
type Check struct {
	// Name is short, and unique in the list.
	Name string
	// Doing is told before it begins; "" for what takes no time.
	Doing string
	// After are the checks of which nothing may be wrong, or this one is not tried.
	After []string
	// Ask answers it. At least one finding comes back, unless ctx ended.
	Ask func(ctx context.Context) []Finding
}

// Report is what a rehearsal found.
type Report struct {
	Findings []Finding
	Took     time.Duration
}

// Count is how many findings have that mark.
func (r Report) Count(m Mark) int {
	n := 0
	for _, f := range r.Findings {
		if f.Mark == m {
			n++
		}
	}
	return n
}

// Play asks one check after the other and tells each finding as soon as it is known. The error is that of ctx: what a
// check says after its end is about the interrupt, and is not told.
func Play(ctx context.Context, checks []Check, tell func(Finding), progress func(line string)) (Report, error) {
	started := time.Now()
	var r Report
	failed := map[string]bool{}
	for _, c := range checks {
		found := ask(ctx, c, failed, progress)
		if err := ctx.Err(); err != nil {
			return r, err
		}
		for _, f := range found {
			f.Check = c.Name
			failed[c.Name] = failed[c.Name] || f.Mark == Wrong || f.Mark == Untried
			r.Findings = append(r.Findings, f)
			tell(f)
		}
	}
	r.Took = time.Since(started)
	return r, nil
}

func ask(ctx context.Context, c Check, failed map[string]bool, progress func(line string)) []Finding {
	if i := slices.IndexFunc(c.After, func(name string) bool { return failed[name] }); i >= 0 {
		return []Finding{{Mark: Untried, Detail: "not tried, because of " + c.After[i]}}
	}
	if c.Doing != "" {
		progress(c.Doing)
	}
	return c.Ask(ctx)
}
