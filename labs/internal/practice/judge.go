package practice

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Spec is how a cluster is made for the task: as spec says, and prepared by the set-up. Of s it needs Values, Clusters and Root. It
// fails unless the fault shows: a check that passes before anything is done judges nothing.
func (t *Task) Spec(spec clusters.Spec, s Setup) clusters.Spec {
	load := spec.Prepare
	spec.Label = t.Name
	spec.Prepare = func(ctx context.Context, c *clusters.Cluster) error {
		admin, rest, err := connect(c)
		if err := errors.Join(err, load(ctx, c)); err != nil {
			return err
		}
		s.Client, s.Cluster, s.Folder, s.dir = admin, c, t.Folder, filepath.Join(s.Root, filepath.FromSlash(t.Dir))
		s.until = time.Now().Add(setupLimit)
		err = t.Program.Setup(ctx, &s)
		var checks []verdict.Check
		if err == nil {
			checks, err = t.judge(ctx, &Reader{Client: admin, Values: s.Values, Folder: t.Folder, rest: rest})
		}
		if i := slices.IndexFunc(checks, func(c verdict.Check) bool { return c.State == verdict.Passed }); err == nil && i >= 0 {
			err = fmt.Errorf("the check %s passes before anything is done", checks[i].ID)
		}
		if err != nil {
			return fmt.Errorf("set up %s: %w", t.Name, err)
		}
		return nil
	}
	return spec
}

// Judge judges what the cluster shows now, and changes nothing in it. What keeps it from judging is a verdict, too: environment.
func (t *Task) Judge(ctx context.Context, c *clusters.Cluster, seed int64) (*verdict.Result, error) {
	started := time.Now()
	r := &verdict.Result{
		Schema: 1, Lab: t.Number, Verdict: verdict.Pass, Started: started, Run: verdict.NewRunID(started), Seed: seed,
		Cluster: verdict.Cluster{Provider: c.Provider, Version: c.Version},
	}
	admin, rest, err := connect(c)
	if err == nil {
		w := waiter{started.Add(patience)}
		r.Checks, err = t.judge(ctx, &Reader{Client: admin, Values: t.Draw(seed), Folder: t.Folder, rest: rest, waiter: w})
	}
	r.Seconds = time.Since(started).Seconds()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		r.Verdict = verdict.Environment
		r.Environment = verdict.Finding{Finding: err.Error(), Fix: "make reset-" + t.Name + ", which makes a fresh cluster"}
	case r.First() != nil:
		r.Verdict = verdict.Fail
	}
	plain.Within(r)
	return r, nil
}

// judge runs the checks one after the other, with dry runs in place of writes. The error is what kept one from judging.
func (t *Task) judge(ctx context.Context, r *Reader) (checks []verdict.Check, err error) {
	r.Client = client.NewDryRunClient(r.Client)
	for _, check := range t.Checks {
		v := verdict.Check{ID: check.ID, Title: check.Title, Lab: t.Number, State: verdict.Passed}
		i := slices.IndexFunc(checks, func(o verdict.Check) bool { return o.State != verdict.Passed && slices.Contains(check.Requires, o.ID) })
		if i >= 0 {
			v.State, v.BlockedBy = verdict.Blocked, checks[i].ID
		} else if seen := t.Program.Checks[check.ID](ctx, r); seen != nil {
			f, ok := errors.AsType[*finding.Finding](seen)
			if !ok {
				return checks, fmt.Errorf("the check %s: %w", check.ID, seen)
			}
			v.State, v.Cause, v.Expected, v.Seen, v.Fields = verdict.Failed, f.Cause, f.Expected, f.Seen, f.Fields
		}
		checks = append(checks, v)
	}
	return checks, nil
}
