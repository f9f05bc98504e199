package verdict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/course"
)

// stormsPerSuite is how many storms follow each other in one run of the suite, on one manager process
// and its restarts. It bounds what is lost with a run that breaks off.
const stormsPerSuite = 20

// Soak lets storms of the seeds from, from+1, … loose on the workspace, on one cluster, and tells each
// about it. A storm that was not weathered is told and no error; an error is a soak that could not go on.
// check is the id of the storm's check, lab the number of its lab.
func (j *Judge) Soak(ctx context.Context, lab int, check string, from int64, seeds int, each func(harness.Storm)) (err error) {
	r, err := j.newRun()
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	defer func() { err = errors.Join(err, r.deleteCluster(ctx, nil)) }()
	wanted, err := r.Course.Lab(lab)
	if err != nil {
		return err
	}
	r.wanted = []*course.Lab{wanted}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if r.build != nil {
		return fmt.Errorf("build %s:\n%s", r.Workspace, r.build.Output)
	}
	for next, end := from, from+int64(seeds); next < end; {
		storms, err := r.storms(ctx, lab, check, next, min(stormsPerSuite, int(end-next)))
		if err := interrupted(ctx, err); err != nil {
			return err
		}
		for _, s := range storms {
			each(s)
		}
		next += int64(len(storms))
	}
	return nil
}

// storms runs the suite once. It returns at least one storm, in the order of their seeds; after one that
// was not weathered there are no others.
func (r *run) storms(ctx context.Context, lab int, check string, seed int64, n int) ([]harness.Storm, error) {
	config := r.config([]int{lab})
	config.Checks, config.Seed, config.Storms = []string{check}, seed, n
	config.Artifacts = filepath.Join(r.artifacts, fmt.Sprintf("seed-%d", seed))
	if err := os.MkdirAll(config.Artifacts, 0o755); err != nil {
		return nil, fmt.Errorf("make artifacts folder: %w", err)
	}
	report, err := r.tools.RunSuite(ctx, config)
	if err != nil {
		return nil, err
	}
	return stormsOf(report, check, seed)
}

// stormsOf reads what a suite reports about its storms, the first of which has the given seed. A check
// that ended in another way than by a storm's verdict counts as a storm that was not weathered.
func stormsOf(report types.Report, check string, seed int64) ([]harness.Storm, error) {
	var storms []harness.Storm
	for _, spec := range report.SpecReports {
		if checkID(spec) != check {
			if spec.Failed() {
				return nil, fmt.Errorf("%s failed: %s", spec.LeafNodeType, spec.FailureMessage())
			}
			continue
		}
		for _, entry := range spec.ReportEntries {
			if entry.Name != harness.StormEntry {
				continue
			}
			var s harness.Storm
			if err := json.Unmarshal([]byte(entry.Value.AsJSON), &s); err != nil {
				return nil, fmt.Errorf("read report of a storm: %w", err)
			}
			storms = append(storms, s)
		}
		if told := len(storms) > 0 && storms[len(storms)-1].Cause != ""; spec.Failed() && !told {
			f := findingOf(spec)
			storms = append(storms, harness.Storm{Seed: seed + int64(len(storms)), Cause: f.Cause, Seen: f.Seen})
		}
	}
	if len(storms) == 0 {
		return nil, fmt.Errorf("the check %s did not run", check)
	}
	return storms, nil
}
