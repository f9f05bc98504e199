package grade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Judge gives verdicts on labs of one workspace in one run, as [verdict.Judge.Check] does.
type Judge func(ctx context.Context, state, workspace string, labs []int) ([]*verdict.Result, error)

// Grader judges what learners handed in.
type Grader struct {
	Course *course.Course
	// Labs are the numbers of those to judge.
	Labs []int
	// Out is a folder for a folder of each learner: what was judged, results, reports and artifacts. What an earlier
	// run left there of the same learner is removed.
	Out   string
	Judge Judge
	// Parallel is how many are judged at a time, 1 if 0.
	Parallel int
	// Progress is told what takes long, in one line each.
	Progress func(line string)

	taking sync.Mutex
}

// Grade is what became of one submission.
type Grade struct {
	Submission
	// Results are one for each lab that was to be judged, in their order.
	Results []*verdict.Result
}

// Result is that of lab n, nil when it was not judged.
func (g Grade) Result(n int) *verdict.Result {
	for _, r := range g.Results {
		if r.Lab == n {
			return r
		}
	}
	return nil
}

// Verdict is the worst of them.
func (g Grade) Verdict() verdict.Verdict { return verdict.Worst(g.Results) }

// Run grades the submissions in their order and tells each grade as soon as it is known, one at a time. Whatever is wrong with
// one, or with the machine while it is judged, does not stop the rest: an error means that ctx has ended.
func (g *Grader) Run(ctx context.Context, all []Submission, tell func(Grade)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(g.Parallel, 1))
	var telling sync.Mutex
	for i, s := range all {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			g.Progress(fmt.Sprintf("%s (%d of %d)", s.Name, i+1, len(all)))
			grade, err := g.grade(ctx, s)
			if err == nil {
				telling.Lock()
				defer telling.Unlock()
				tell(grade)
			}
			return err
		})
	}
	return group.Wait()
}

// groups are the labs that one run can judge together. A lab that runs others again does that under the learner's own
// role, in which the others alone are not judged.
func (g *Grader) groups() [][]int {
	var together []int
	var groups [][]int
	for _, n := range g.Labs {
		if lab := g.Course.Labs[n-1]; len(lab.Reruns) > 0 {
			groups = append(groups, []int{n})
		} else {
			together = append(together, n)
		}
	}
	if len(together) > 0 {
		groups = slices.Insert(groups, 0, together)
	}
	return groups
}

// grade judges one submission. The error is that of ctx.
func (g *Grader) grade(ctx context.Context, s Submission) (Grade, error) {
	grade, started := Grade{Submission: s}, time.Now()
	state := filepath.Join(g.Out, s.ID)
	workspace := ""
	err := os.RemoveAll(state)
	if err == nil {
		err = os.MkdirAll(state, 0o700) // nobody else reads what somebody handed in
	}
	if err == nil {
		workspace, err = g.take(ctx, s, filepath.Join(state, "workspace"))
	}
	if ctx.Err() != nil {
		return grade, ctx.Err()
	}
	if err != nil {
		grade.Results = g.unread(started, g.Labs, err)
		return grade, nil
	}
	for _, labs := range g.groups() {
		results, err := g.Judge(ctx, state, workspace, labs)
		if ctx.Err() != nil {
			return grade, ctx.Err()
		}
		if err != nil {
			results = g.unread(started, labs, err)
		}
		grade.Results = append(grade.Results, results...)
	}
	slices.SortFunc(grade.Results, func(a, b *verdict.Result) int { return a.Lab - b.Lab })
	if err := g.report(state, grade); err != nil {
		g.Progress(fmt.Sprintf("could not keep the report of %s: %v", s.Name, err))
	}
	return grade, nil
}

// take takes one after the other: what a repository may take of the memory is for one.
func (g *Grader) take(ctx context.Context, s Submission, to string) (string, error) {
	g.taking.Lock()
	defer g.taking.Unlock()
	return take(ctx, s, to)
}

// unread are the results for what could not be judged: the learner's, where they handed in what nobody can judge.
func (g *Grader) unread(started time.Time, labs []int, err error) []*verdict.Result {
	if refused, ok := errors.AsType[*Refused](err); ok {
		return g.blank(started, labs, verdict.Fail, func(r *verdict.Result) { r.Build = &verdict.Build{Output: refused.Why} })
	}
	return g.blank(started, labs, verdict.Environment, func(r *verdict.Result) { blame(r, err) })
}

// blank are results of labs of which no check was asked.
func (g *Grader) blank(started time.Time, labs []int, v verdict.Verdict, fill func(*verdict.Result)) []*verdict.Result {
	var results []*verdict.Result
	for _, n := range labs {
		r := &verdict.Result{Schema: 1, Lab: n, Verdict: v, Started: started, Seconds: time.Since(started).Seconds()}
		for _, c := range g.Course.Labs[n-1].Checks {
			r.Checks = append(r.Checks, verdict.Check{ID: c.ID, Title: c.Title, Lab: n, State: verdict.Blocked, BlockedBy: "build"})
		}
		fill(r)
		r.Plain()
		results = append(results, r)
	}
	return results
}

// blame says what is wrong with the machine.
func blame(r *verdict.Result, err error) {
	r.Environment = verdict.Finding{Finding: err.Error(), Fix: "make doctor"}
	if p, ok := errors.AsType[*clusters.Problem](err); ok {
		r.Environment = verdict.Finding{Finding: p.Finding(), Fix: p.Fix}
	}
}

// report writes the report as the learner would have seen it.
func (g *Grader) report(state string, grade Grade) error {
	var text bytes.Buffer
	for _, r := range grade.Results {
		verdict.Print(&text, r, g.Course.Labs[r.Lab-1], g.Course.Hint)
	}
	return os.WriteFile(filepath.Join(state, "report.txt"), text.Bytes(), 0o600)
}
