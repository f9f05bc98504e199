package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/cka"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/practice"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// taskPrefix begins the name of a task where a command takes labs, too: lab hint cka-3.
const taskPrefix = "cka-"

func newCKACommand(a *app) *cobra.Command {
	var seed int64
	cmd := cli.Command("cka [N]", `Practise for the CKA: the tasks, or task N (make cka, make cka-N)

The first call makes a fresh cluster, prepares it, asks the question and opens a shell for it. Each later call judges. The cluster stays
until the task has passed, or until lab down.`, cobra.MaximumNArgs(1), func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			return a.listTasks()
		}
		return a.practise(ctx, args[0], seed, false)
	})
	cmd.Flags().Int64Var(&seed, "seed", 0, "ask with the names and numbers of an earlier attempt (default: drawn)")
	return cmd
}

// withTask runs a command on a task, N or cka-N, while no other command works on tasks. A shell for the cluster that it returns follows.
func (a *app) withTask(ctx context.Context, name string, run func(*practice.Task) (*clusters.Cluster, error)) error {
	unlock, err := a.Lock("cka", "the CKA practice")
	if err != nil {
		return err
	}
	defer unlock()
	p, err := practice.Load(a.Root, a.State, cka.Programs())
	if err != nil {
		return exit.Usage("%v", err)
	}
	var known []string
	for _, t := range p.Tasks {
		if t.Name == taskPrefix+strings.TrimPrefix(name, taskPrefix) {
			c, err := run(t)
			unlock()
			if c != nil {
				err = cmp.Or(a.taskShell(ctx, t, c), err)
			}
			return err
		}
		known = append(known, strings.TrimPrefix(t.Name, taskPrefix))
	}
	return exit.Usage("%q is not a task of the CKA practice: use one of %s", name, strings.Join(known, ", "))
}

func (a *app) listTasks() error {
	p, err := practice.Load(a.Root, a.State, cka.Programs())
	if err != nil {
		return exit.Usage("%v", err)
	}
	var domains [][]string
	touched := map[string]bool{}
	for _, t := range p.Tasks {
		touched[t.Objective] = true
		mark, title := " ", t.Title
		if !t.Attempt.Passed.IsZero() {
			mark, title = "✓", fmt.Sprintf("%s (passed %s, in %s)", t.Title, minute(t.Attempt.Passed), t.Attempt.Took.Round(time.Second))
		}
		fmt.Fprint(a.Out, plain.Fold(fmt.Sprintf("%s %-6s  ", mark, t.Name), title), plain.Fold("            ", t.Domain+": "+t.Objective))
	}
	all := 0
	for _, d := range p.Domains {
		all += len(d.Objectives)
		untouched := slices.DeleteFunc(slices.Clone(d.Objectives), func(o string) bool { return touched[o] })
		domains = append(domains, []string{"  " + d.Name, fmt.Sprintf("%d of %d", len(d.Objectives)-len(untouched), len(d.Objectives)),
			fmt.Sprintf("%d %% of the exam", d.Weight)})
	}
	fmt.Fprintf(a.Out, "\nThey practise parts of %d of the %d objectives of the CKA's curriculum %s; no objective in full:\n", len(touched), all, p.Version)
	return plain.Table(a.Out, domains...)
}

// practise is `lab cka N`: it asks the question, or judges what was done since then. With reset it asks anew, on a fresh cluster.
func (a *app) practise(ctx context.Context, name string, seed int64, reset bool) error {
	return a.withTask(ctx, name, func(t *practice.Task) (*clusters.Cluster, error) {
		c, owned, err := a.kept(ctx, t.Name)
		if reset && err == nil && c != nil {
			err, c, seed = owned.Delete(ctx, c.Name), nil, t.Attempt.Seed
		}
		if err == nil && c == nil {
			return a.ask(ctx, t, seed)
		}
		if err != nil {
			return nil, err
		}
		result, err := t.Judge(ctx, c, t.Attempt.Seed)
		if err != nil {
			return nil, err
		}
		took := time.Since(t.Attempt.Started)
		t.Attempt.Result, t.Attempt.Layers = result, 1 // the report shows the first
		if result.Verdict == verdict.Pass {
			t.Attempt.Passed, t.Attempt.Took = time.Now(), took
		}
		if err := t.Save(); err != nil {
			return nil, err
		}
		defer a.report(ctx, []*verdict.Result{result})
		verdict.Print(a.Out, result, &t.Lab, t.Hint)
		fmt.Fprintf(a.Out, "%s since the question. ", took.Round(time.Second))
		if result.Verdict == verdict.Pass {
			fmt.Fprintf(a.Out, "`make solution-%s` shows two ways to do it.\n", t.Name)
			return nil, cli.Delete(ctx, owned, c)
		}
		fmt.Fprintf(a.Out, "`make %s` judges again, `make reset-%s` begins anew.\nDocumentation: %s\n", t.Name, t.Name, t.Page)
		return c, cli.Told(result.Verdict)
	})
}

// ask makes a fresh cluster for an attempt, prepares it, and asks the question. An attempt that is interrupted leaves no cluster.
func (a *app) ask(ctx context.Context, t *practice.Task, seed int64) (*clusters.Cluster, error) {
	t.Attempt.Seed = cmp.Or(seed, 1+rand.Int64N(99_999))
	values := t.Draw(t.Attempt.Seed)
	question, err := t.Question(values)
	switch {
	case err != nil:
		return nil, err
	case t.Cluster == cli.Kind && a.Cluster == cli.Embedded:
		return nil, exit.Usage("%s needs containers that run: leave out CLUSTER=embedded", t.Name)
	case t.Cluster == cli.Kind:
		a.Cluster = cli.Kind
	}
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return nil, err
	}
	a.Progress("starting a cluster and preparing it, which takes up to half a minute")
	spec := t.Spec(a.Spec(owned, image), practice.Setup{Values: values, Clusters: owned, Root: a.Root})
	prepare := spec.Prepare
	spec.Keep = true
	spec.Prepare = func(ctx context.Context, c *clusters.Cluster) error {
		if err := prepare(ctx, c); err != nil {
			return err
		}
		t.Attempt.Started, t.Attempt.Result = time.Now(), nil
		return errors.Join(t.Save(), os.WriteFile(filepath.Join(t.Folder, "question.md"), []byte(question), 0o600))
	}
	c, err := owned.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	verdict.Rule(a.Out, t.Name+": "+t.Title)
	fmt.Fprintf(a.Out, "\n%s\n\n%s: %s. Seed %d.\nWhen you are done, `make %s` judges. `make down` gives up.\n",
		strings.TrimSpace(question), t.Domain, t.Objective, t.Attempt.Seed, t.Name)
	return c, nil
}

// taskShell opens a shell whose kubectl talks to the cluster of a task, unless this is one. Without a terminal, it says how to reach it.
func (a *app) taskShell(ctx context.Context, t *practice.Task, c *clusters.Cluster) error {
	if os.Getenv("LAB_CLUSTER") == c.Name {
		return nil
	}
	if !a.AtTerminal() {
		fmt.Fprintf(a.Out, "In a shell of your own: export KUBECONFIG=%s\n", c.Kubeconfig)
		return nil
	}
	path, err := a.KubectlPath(ctx)
	if err != nil {
		return err
	}
	file := filepath.Join(t.Folder, "bashrc")
	if err := os.WriteFile(file, []byte(taskSettings), 0o600); err != nil {
		return fmt.Errorf("prepare the shell: %w", err)
	}
	fmt.Fprintf(a.Out, "In this shell kubectl, or k, talks to %s. `cat question.md` shows the question again; exit ends the shell, not the task.\n", c.Name)
	return a.runShell(exec.Command("bash", "--rcfile", file, "-i"), filepath.Dir(file), "LAB_CLUSTER="+c.Name, "LAB_KUBECONFIG="+c.Kubeconfig,
		"LAB_ROOT="+a.Root, "LAB_TASK="+t.Name, "PATH="+path)
}

// taskSettings are of the shell of a task. make is that of the checkout, without the settings of the make that has started the shell.
const taskSettings = `for file in ~/.bashrc /usr/share/bash-completion/bash_completion; do [ -r "$file" ] && . "$file"; done
unset MAKEFLAGS MFLAGS MAKELEVEL SEED FORCE
export KUBECONFIG=$LAB_KUBECONFIG
make() { command make --no-print-directory -C "$LAB_ROOT" "$@"; }
alias k=kubectl
. <(kubectl completion bash) && complete -o default -F __start_kubectl k
PS1="($LAB_TASK) $PS1"
`

func (a *app) hintTask(ctx context.Context, args []string) error {
	return a.withTask(ctx, args[0], func(t *practice.Task) (*clusters.Cluster, error) {
		r := t.Attempt.Result
		if r == nil || r.Verdict != verdict.Fail {
			return nil, exit.Usage("nothing failed when %s was judged last: make %s judges it", t.Name, t.Name)
		}
		if verdict.PrintHints(a.Out, r, t.Hint, t.Attempt.Layers+1) {
			t.Attempt.Layers++
		}
		fmt.Fprintf(a.Out, "Documentation: %s\n", t.Page)
		return nil, t.Save()
	})
}

// solution shows the ways to do a task, with the names and numbers of the last attempt.
func (a *app) solution(ctx context.Context, name string) error {
	return a.withTask(ctx, name, func(t *practice.Task) (*clusters.Cluster, error) {
		if t.Attempt.Passed.IsZero() && !a.Yes {
			return nil, exit.Usage("this shows the solution, and %s has not passed yet: make solution-%s FORCE=1 shows it all the same", t.Name, t.Name)
		}
		for _, s := range t.Solutions {
			text, err := t.Draw(t.Attempt.Seed).Render(s.Text)
			if err != nil {
				return nil, err
			}
			verdict.Rule(a.Out, t.Name+", "+s.Name)
			fmt.Fprintln(a.Out, text)
		}
		return nil, nil
	})
}
