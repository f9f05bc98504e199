package mutants

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Runner judges answers, each on a fresh cluster.
type Runner struct {
	Course *course.Course
	// State keeps the workspace, the report and the artifacts of each answer, in a folder of its own.
	State string
	// Cache is where memcached's image is kept.
	Cache string
	// Clusters makes the clusters, those of kind with NodeImage.
	Clusters  *clusters.Manager
	NodeImage nodeimage.Image
	Tools     verdict.Tools
	// Seed is that of each verdict; with 0, each verdict draws one.
	Seed int64
}

// Judge judges an answer. When the verdict blames the machine, it judges once more.
func (r *Runner) Judge(ctx context.Context, a Answer) (Outcome, error) {
	dir := filepath.Join(r.State, fmt.Sprintf("%d-%s", a.Lab, a.ID))
	results, err := r.check(ctx, a, dir)
	if err == nil && verdict.Worst(results) == verdict.Environment {
		results, err = r.check(ctx, a, dir)
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("judge %s: %w", a, err)
	}
	var report bytes.Buffer
	verdict.Print(&report, results[len(results)-1], r.Course.Labs[a.Lab-1], r.Course.Hint)
	if err := os.WriteFile(filepath.Join(dir, "report.txt"), report.Bytes(), 0o600); err != nil {
		return Outcome{}, fmt.Errorf("keep the report: %w", err)
	}
	o := Compare(r.Course, a, report.String(), results...)
	o.Dir = dir
	return o, nil
}

// check makes the workspace of an answer anew and has it judged.
func (r *Runner) check(ctx context.Context, a Answer, dir string) ([]*verdict.Result, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	workspace := filepath.Join(dir, "workspace")
	if err := a.write(ctx, r.Course, workspace, r.Tools.ControllerGen); err != nil {
		return nil, err
	}
	judge := &verdict.Judge{
		Course: r.Course, State: dir, Cache: r.Cache, Workspace: workspace, Clusters: r.Clusters, NodeImage: r.NodeImage,
		Tools: r.Tools, Seed: r.Seed, Unblocked: a.Starter, Progress: func(string) {},
	}
	return judge.Check(ctx, append(slices.Clone(a.Earlier), a.Lab))
}
