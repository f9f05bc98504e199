package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Grader judges what learners handed in.
type Grader struct {
	Course *course.Course
	// Labs are the numbers of those to judge, in order.
	Labs []int
	// Judge judges what was handed in at a path, as [Containers.Judge] does.
	Judge func(ctx context.Context, path string, labs []int) (hosted.Answer, error)
	// Checks tells those of one version of the course from others, and Runtime what runs them, such as runsc, which is gVisor.
	Checks, Runtime string
	// Out has a folder for each learner, with report.txt and grade.json. A grade that is there is kept, if nothing else was
	// handed in since, the checks are the same, and this machine was not at fault.
	Out string
	// Parallel is how many are judged at a time.
	Parallel int
	// Progress is told what takes long, in one line each.
	Progress func(line string)
}

// Grade is what became of one submission.
type Grade struct {
	Submission
	// Of tells what was judged, and by which checks.
	Of string `json:"of"`
	// Runtime is what ran the container, such as runsc, which is gVisor.
	Runtime string `json:"runtime"`
	// Results are one for each lab that was to be judged, in their order.
	Results []*verdict.Result `json:"results"`
}

// Run grades the submissions and tells each grade as soon as it is known, one at a time. Whatever is wrong with one, or with
// the machine while it is judged, does not stop the rest: an error means that ctx has ended.
func (g *Grader) Run(ctx context.Context, all []Submission, tell func(Grade)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(g.Parallel, 1))
	var telling sync.Mutex
	for i, s := range all {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			grade, kept := g.kept(s)
			if !kept {
				g.Progress(fmt.Sprintf("%s (%d of %d)", s.Name, i+1, len(all)))
				if grade.Results = g.judge(ctx, s); ctx.Err() != nil {
					return ctx.Err()
				}
			}
			telling.Lock()
			defer telling.Unlock()
			if err := g.keep(grade); err != nil {
				g.Progress(fmt.Sprintf("could not keep the grade of %s: %v", s.Name, err))
			}
			tell(grade)
			return nil
		})
	}
	return group.Wait()
}

// judge gives a result for each lab, whatever happens.
func (g *Grader) judge(ctx context.Context, s Submission) []*verdict.Result {
	started := time.Now()
	answer, err := g.Judge(ctx, s.Path, g.Labs)
	answer.Results = slices.DeleteFunc(answer.Results, func(r *verdict.Result) bool { return r == nil }) // JSON has null
	judged := make([]int, len(answer.Results))
	for i, r := range answer.Results {
		judged[i] = r.Lab
		r.Plain()
		r.Workspace, r.Artifacts = s.Path, "" // they were other folders in the container, and gone with it
	}
	switch {
	case err != nil:
		answer.Problem = hosted.ProblemOf(err)
	case answer.Refused == "" && answer.Problem == nil && slices.Equal(judged, g.Labs):
		return answer.Results
	case answer.Refused == "" && answer.Problem == nil:
		answer.Problem = &clusters.Problem{What: fmt.Sprintf("the container judged other labs: %v", judged)}
	}
	return g.blank(started, s, answer)
}

// blank are results of labs of which no check was asked: fails, or the machine's fault.
func (g *Grader) blank(started time.Time, s Submission, why hosted.Answer) (results []*verdict.Result) {
	for _, n := range g.Labs {
		r := &verdict.Result{
			Schema: 1, Lab: n, Verdict: verdict.Fail, Started: started, Seconds: time.Since(started).Seconds(), Workspace: s.Path,
			Build: &verdict.Build{Output: why.Refused},
		}
		if why.Problem != nil {
			r.Verdict, r.Build = verdict.Environment, nil
			r.Environment = verdict.Finding{Finding: why.Problem.What, Fix: why.Problem.Fix}
		}
		for _, c := range g.Course.Labs[n-1].Checks {
			r.Checks = append(r.Checks, verdict.Check{ID: c.ID, Title: c.Title, Lab: n, State: verdict.Blocked, BlockedBy: "build"})
		}
		r.Plain()
		results = append(results, r)
	}
	return results
}

func (g *Grader) path(s Submission, file string) string {
	return filepath.Join(g.Out, filepath.Base(s.Path), file)
}

// kept is the grade that an earlier run has kept, if it holds.
func (g *Grader) kept(s Submission) (grade Grade, ok bool) {
	digest, err := s.digest()
	fresh := Grade{Submission: s, Runtime: g.Runtime, Of: fmt.Sprintf("%s, labs %v, checks %s", digest, g.Labs, g.Checks)}
	data, readErr := os.ReadFile(g.path(s, "grade.json"))
	if errors.Join(err, readErr) == nil && json.Unmarshal(data, &grade) == nil && grade.Of == fresh.Of &&
		grade.Runtime == fresh.Runtime && verdict.Worst(grade.Results) != verdict.Environment {
		return grade, true
	}
	return fresh, false
}

// keep writes the grade, and the report as the learner would have seen it.
func (g *Grader) keep(grade Grade) error {
	data, err := json.MarshalIndent(grade, "", " ")
	if err != nil {
		return err
	}
	var report bytes.Buffer
	for _, r := range grade.Results {
		verdict.Print(&report, r, g.Course.Labs[r.Lab-1], g.Course.Hint)
	}
	if err := os.MkdirAll(g.path(grade.Submission, ""), 0o700); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(g.path(grade.Submission, "report.txt"), report.Bytes(), 0o600),
		os.WriteFile(g.path(grade.Submission, "grade.json"), data, 0o600))
}
