package mutants

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
)

// Answer is one thing to judge: a wrong answer to a lab, its starter, or a right answer.
type Answer struct {
	Lab int
	// ID is the mutant's, "starter", "solution", "finished", or the name of the style.
	ID string
	// Mutant is the wrong answer, nil for the others.
	Mutant *Mutant
	// Starter is what the lab begins with: every one of its checks has to fail.
	Starter bool
	// Style is a folder of labs/correct with a right answer in another style than ours, "" for the others.
	Style string
	// Earlier are labs that the right answer has to pass besides.
	Earlier []int
}

// String names it among all answers, such as "4/starter".
func (a Answer) String() string { return fmt.Sprintf("%d/%s", a.Lab, a.ID) }

// NeedsPods says whether a check that the answer is about needs a cluster on which containers run.
func (a Answer) NeedsPods(c *course.Course) bool {
	for _, n := range append(slices.Clone(a.Earlier), a.Lab) {
		for _, check := range c.Labs[n-1].Checks {
			if check.NeedsPods() && (a.Mutant == nil || a.Mutant.Caught == check.ID) {
				return true
			}
		}
	}
	return false
}

// firstOfStyles is the first lab that the answers in labs/correct are judged on: the first with a manager.
const firstOfStyles = 4

// All are all answers, in the course's order: of each lab the starter, the solution and the wrong answers; then the finished operator
// and the right answers in other styles, which have to pass the earlier labs, too.
func All(c *course.Course, wrong []*Mutant) (answers []Answer) {
	var earlier []int
	for _, lab := range c.Labs {
		answers = append(answers, Answer{Lab: lab.Number, ID: "starter", Starter: true}, Answer{Lab: lab.Number, ID: "solution"})
		earlier = append(earlier, lab.Number)
		for _, m := range wrong {
			if m.Lab == lab.Number {
				answers = append(answers, Answer{Lab: m.Lab, ID: m.ID, Mutant: m})
			}
		}
	}
	answers = append(answers, Answer{Lab: len(c.Labs), ID: "finished", Earlier: earlier[:len(c.Labs)-1]})
	modules, _ := filepath.Glob(filepath.Join(c.Root, course.LabsDir, "correct", "*", "go.mod")) // the pattern is well formed
	for _, file := range modules {
		dir := filepath.Dir(file)
		last := lastOf(c, dir)
		answers = append(answers, Answer{Lab: last, ID: filepath.Base(dir), Style: dir, Earlier: earlier[firstOfStyles-1 : last-1]})
	}
	return answers
}

// lastOf is the last lab that the right answer in dir is judged on: the one before the first that is about a folder which it lacks.
func lastOf(c *course.Course, dir string) int {
	for before, lab := range c.Labs {
		for _, check := range lab.Checks {
			for need, folder := range map[string]string{course.NeedsImage: "default", course.NeedsLoopback: "webhook"} {
				if _, err := os.Stat(filepath.Join(dir, "config", folder)); err != nil && slices.Contains(check.Needs, need) {
					return before
				}
			}
		}
	}
	return len(c.Labs)
}

// Gate are the answers that each change is judged by: [All], but of the wrong answers only those to the changed labs, and the first to
// each other lab.
func Gate(c *course.Course, wrong []*Mutant, changed func(folder string) bool) []Answer {
	seen := map[int]bool{}
	return slices.DeleteFunc(All(c, wrong), func(a Answer) bool {
		if a.Mutant == nil || changed(c.Labs[a.Lab-1].Dir) || changed(course.SourceDir) {
			return false
		}
		second := seen[a.Lab]
		seen[a.Lab] = true
		return second
	})
}

// Changed says whether a change can let wrong answers to what is in a folder pass: whether the folder differs from the commit where the
// branch left origin's. On origin's branch itself that is the commit before. Without the history of git, as in a shallow clone, nothing
// has changed. folder is a slash path below the checkout.
func Changed(ctx context.Context, root string) func(folder string) bool {
	git := func(args ...string) string {
		// CI may clone as another user.
		out, _ := exec.CommandContext(ctx, "git", append([]string{"-C", root, "-c", "safe.directory=*"}, args...)...).Output()
		return strings.TrimSpace(string(out)) // without an answer there is nothing to compare with
	}
	base := git("merge-base", "HEAD", "origin/HEAD")
	if base == "" || base == git("rev-parse", "HEAD") {
		base = git("rev-parse", "--verify", "--quiet", "HEAD^")
	}
	files := ""
	if base != "" {
		files = "\n" + git("diff", "--name-only", base) + "\n" + git("ls-files", "--others", "--exclude-standard")
	}
	return func(folder string) bool { return strings.Contains(files, "\n"+folder+"/") }
}

// write makes the workspace of a learner who answers like this. generator is the path of controller-gen.
func (a Answer) write(ctx context.Context, c *course.Course, workspace, generator string) (err error) {
	var tree course.Tree
	switch {
	case a.Style != "":
		return a.copyStyle(ctx, workspace, generator)
	case a.Mutant != nil:
		tree, err = a.Mutant.Render(ctx, c, generator)
	case a.Starter:
		tree, err = c.Render(a.Lab - 1)
	default:
		tree, err = c.Render(a.Lab)
	}
	if err != nil {
		return err
	}
	return tree.WriteTo(workspace)
}

// copyStyle copies the folder, and makes the files that `make generate` makes.
func (a Answer) copyStyle(ctx context.Context, workspace, generator string) error {
	if err := os.CopyFS(workspace, os.DirFS(a.Style)); err != nil {
		return fmt.Errorf("copy %s: %w", a.Style, err)
	}
	cmd := exec.CommandContext(ctx, "make", "-C", workspace, "generate", "CONTROLLER_GEN="+generator)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make generate in a copy of %s: %w\n%s", a.Style, err, out)
	}
	return nil
}
