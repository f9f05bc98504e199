package mutants

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/practice"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	scriptLimit   = 2 * time.Minute
	questionLines = 24 // what fits on one screen beside the command's own lines
	stillTries    = 3  // until nothing changes while it is judged: controllers may still have been at work
	// versions lists all objects with their versions, except of resources that components write all the time. Of Pods, whose status the
	// kubelet writes, it has the generation and the labels.
	versions = `{
kubectl api-resources --verbs=list -o name | grep -Ev '^(leases|events|nodes|pods|componentstatuses)([.]|$)' | paste -sd, |
xargs kubectl get -A --ignore-not-found -o custom-columns=:kind,:metadata.namespace,:metadata.name,:metadata.uid,:metadata.resourceVersion
kubectl get pods -A -o custom-columns=:metadata.namespace,:metadata.name,:metadata.uid,:metadata.generation,:metadata.labels
} >`
)

// TaskAnswer is one thing to judge about a task of the CKA practice: a script.
type TaskAnswer struct {
	Task   *practice.Task
	Script practice.Script
}

// String names it among all answers, such as "cka-3/no-schema".
func (a TaskAnswer) String() string { return a.Task.Name + "/" + a.Script.Name }

// TaskAnswers are all answers to tasks. Of the wrong answers to a task that did not change, it is the first alone.
func TaskAnswers(p *practice.Practice, changed func(folder string) bool) (all []TaskAnswer) {
	for _, t := range p.Tasks {
		for i, s := range slices.Concat(t.Solutions, t.Wrong) {
			if i <= len(t.Solutions) || changed(t.Dir) {
				all = append(all, TaskAnswer{t, s})
			}
		}
	}
	return all
}

// Judge judges the answer on a fresh cluster, in the folder dir, which it makes anew. path has kubectl.
func (a TaskAnswer) Judge(ctx context.Context, owned *clusters.Manager, spec clusters.Spec, root, dir, path string, seed int64) (o Outcome, err error) {
	o = Outcome{Answer: a, Dir: dir}
	complain := func(format string, args ...any) { o.Wrong = append(o.Wrong, fmt.Sprintf(format, args...)) }
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return o, err
	}
	task := *a.Task
	task.Folder = dir // the learner's has their files
	started, values := time.Now(), a.Task.Draw(seed)
	c, err := owned.Create(ctx, task.Spec(spec, practice.Setup{Values: values, Clusters: owned, Root: root}))
	if err != nil {
		return o, fmt.Errorf("judge %s: %w", a, err)
	}
	defer func() { err = errors.Join(err, owned.Delete(context.WithoutCancel(ctx), c.Name)) }()
	ready := time.Since(started)
	shell := func(script string) error {
		ctx, cancel := context.WithTimeout(ctx, scriptLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + path, "HOME=" + dir, "KUBECONFIG=" + c.Kubeconfig}
		process.Own(cmd, syscall.SIGKILL)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, plain.Short(string(out), 300))
		}
		return nil
	}
	script, err := a.text(ctx, values)
	if err := cmp.Or(err, shell(script)); err != nil {
		complain("its script: %v", err)
	}
	var result *verdict.Result
	for try, still := 1, false; !still; try++ {
		judge := func() (err error) { result, err = task.Judge(ctx, c, seed); return err }
		if err := cmp.Or(shell(versions+"before"), judge(), shell(versions+"after")); err != nil {
			return o, fmt.Errorf("judge %s: %w", a, err)
		}
		if still = shell("cmp before after") == nil; !still && try == stillTries {
			complain("judging changes the cluster: compare before and after")
			break
		}
	}
	var report bytes.Buffer
	verdict.Print(&report, result, &a.Task.Lab, a.Task.Hint)
	if err := os.WriteFile(filepath.Join(dir, "report.txt"), report.Bytes(), 0o600); err != nil {
		return o, fmt.Errorf("keep the report: %w", err)
	}
	if first := result.First(); first != nil {
		o.Caught = "caught by " + first.ID + ": " + first.Cause
	}
	o.Caught = fmt.Sprintf("%s (ready after %.1f s, judged in %.1f s)", cmp.Or(o.Caught, "as it should"), ready.Seconds(), result.Seconds)
	a.compare(result, report.String(), complain)
	o.Seconds = time.Since(started).Seconds()
	return o, nil
}

// text is the script with the values in it. A patch makes it of a solution.
func (a TaskAnswer) text(ctx context.Context, values practice.Values) (string, error) {
	text := a.Script.Text
	if filepath.Ext(a.Script.File) == extension {
		right := course.Tree{}
		for _, s := range a.Task.Solutions {
			right[s.File] = course.File{Data: []byte(s.Text), Mode: 0o644}
		}
		wrong, err := patch(ctx, right, a.Task.Dir, text)
		changed := wrong.Diff(right)
		switch {
		case err != nil:
			return "", err
		case len(changed) != 1:
			return "", fmt.Errorf("it changes %d solutions, not one", len(changed))
		}
		text = string(wrong[changed[0]].Data)
	}
	return values.Render(text)
}

// compare complains of what the answer does not expect. Which checks fail beside the first does not matter.
func (a TaskAnswer) compare(r *verdict.Result, report string, complain func(format string, args ...any)) {
	switch {
	case a.Script.Caught == "" && r.Verdict != verdict.Pass:
		complain("a solution does not pass: %s", explain(r))
	case a.Script.Caught != "":
		m := &Mutant{Caught: a.Script.Caught, Cause: a.Script.Cause}
		for _, c := range r.Checks {
			m.Also = append(m.Also, c.ID)
		}
		m.compare(r, report, a.Task.Hint(m.Caught, m.Cause, 0), complain)
	}
}

// LintTasks returns what is wrong with tasks and can be seen without a cluster.
func LintTasks(ctx context.Context, root string, p *practice.Practice) (problems []course.Problem) {
	for _, t := range p.Tasks {
		complain := func(wrong bool, format string, args ...any) {
			if wrong {
				problems = append(problems, course.Problem{File: t.Dir, Text: fmt.Sprintf(format, args...)})
			}
		}
		complain(t.Domain == "", "task.yaml: objective: %q is not in %s/curriculum.yaml", t.Objective, practice.Dir)
		complain(!strings.HasPrefix(t.Page, "https://kubernetes.io/docs/"), "task.yaml: page: name one of https://kubernetes.io/docs/")
		complain(len(t.Solutions) < 2 || len(t.Wrong) < 3, "it needs two solutions and three wrong answers at least")
		question, err := t.Question(t.Draw(1))
		complain(err != nil, "%v", err)
		complain(strings.Count(question, "\n") > questionLines, "question.md: it has more than %d lines", questionLines)
		wide := slices.ContainsFunc(strings.Split(question, "\n"), func(line string) bool { return plain.Width(line) > plain.Columns })
		complain(wide, "question.md: a line has more than %d columns", plain.Columns)
		for _, s := range slices.Concat(t.Solutions, t.Wrong) {
			_, err := TaskAnswer{t, s}.text(ctx, t.Draw(1))
			complain(err != nil || !strings.HasPrefix(s.Text, "# "), "%s: it begins with a comment, and becomes a script (%v)", s.File, err)
		}
		code, _ := os.ReadFile(filepath.Join(root, t.Dir, "checks.go"))
		hints := map[string]bool{}
		for _, check := range t.Checks {
			complain(t.Program.Checks[check.ID] == nil, "checks.go: there is no check %s", check.ID)
			complain(len(check.Hints[finding.CauseOther]) == 0, "task.yaml: the check %s has no hints for %s", check.ID, finding.CauseOther)
			for cause := range check.Hints {
				hints[check.ID+" "+cause] = true
				complain(cause != finding.CauseOther && !bytes.Contains(code, []byte(`"`+cause+`"`)), "task.yaml: no check gives the cause %s", cause)
			}
			caught := slices.ContainsFunc(t.Wrong, func(w practice.Script) bool { return w.Caught == check.ID })
			complain(!caught, "no wrong answer is caught by the check %s", check.ID)
		}
		for _, w := range t.Wrong {
			complain(!hints[w.Caught+" "+w.Cause], "%s: no check %q has hints for the cause %q", w.File, w.Caught, w.Cause)
		}
	}
	return problems
}
