package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Check judges in a Pod of the judge's image what it is asked ([hosted.Question]), and writes lines to out ([hosted.Line]).
// What it needs of the disk it takes in the folder for temporary files. An error means that there is no result.
func Check(ctx context.Context, out io.Writer) (verdict.Verdict, error) {
	work, err := os.MkdirTemp("", "judge-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the verdict: %w", err)
	}
	defer os.RemoveAll(work)
	q, err := question(filepath.Join(work, "workspace"))
	if err != nil {
		return "", err
	}
	c, err := course.Load(CourseDir)
	if err != nil {
		return "", err
	}
	for _, n := range q.Labs {
		if _, err := c.Lab(n); err != nil {
			return "", err
		}
	}
	lines := json.NewEncoder(out)
	progress := func(line string) { _ = lines.Encode(hosted.Line{Progress: line}) }
	cache, state := filepath.Join(work, "cache"), filepath.Join(work, "state")
	provider, err := controlPlane(state, cache, progress)
	if err != nil {
		return "", err
	}
	judge := verdict.Judge{
		Course: c, State: state, Cache: cache, Workspace: filepath.Join(work, "workspace"), Clusters: clusters.NewOwned(state, provider),
		Tools: verdict.ToolsIn(BinDir), Seed: q.Seed, Storm: q.Storm, Progress: progress,
		OnOutcome: func(o verdict.Outcome) { _ = lines.Encode(hosted.Line{Outcome: &o}) },
	}
	results, err := check(ctx, work, judge, q.Labs)
	if err != nil {
		return "", err
	}
	artifacts, err := packArtifacts(results[0].Artifacts)
	if err != nil {
		progress(fmt.Sprintf("could not send the artifacts: %v", err))
	}
	answer := hosted.Answer{Results: results, Artifacts: artifacts, Cost: cost()}.Fit()
	return verdict.Worst(results), lines.Encode(hosted.Line{Answer: &answer})
}

// check judges the labs, and has a sandbox run the learner's code where there is a pool of them, if it is closed.
func check(ctx context.Context, work string, judge verdict.Judge, labs []int) ([]*verdict.Result, error) {
	if os.Getenv(hosted.PoolEnv) == "" {
		return judge.Check(ctx, labs)
	}
	s, err := newSandbox(ctx, work, judge.Progress)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := s.release(); err != nil { // the cluster ends it with the Job, and the verdict is known
			judge.Progress(fmt.Sprintf("could not give the sandbox back: %v", err))
		}
	}()
	if err := s.closed(ctx); err != nil {
		return nil, err
	}
	judge.Launcher, judge.Intact = s.launcher, s.intact
	return judge.Check(ctx, labs)
}

// Canary tries what code in a sandbox reaches, and answers out if that is nothing.
func Canary(ctx context.Context, out io.Writer) (err error) {
	work, err := os.MkdirTemp("", "canary-")
	if err != nil {
		return fmt.Errorf("make a folder for the canary: %w", err)
	}
	defer os.RemoveAll(work)
	lines := json.NewEncoder(out)
	s, err := newSandbox(ctx, work, func(line string) { _ = lines.Encode(hosted.Line{Progress: line}) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.release()) }()
	if err := s.closed(ctx); err != nil {
		return err
	}
	return lines.Encode(hosted.Line{Answer: &hosted.Answer{}})
}

// Tell writes what kept a judge from its verdict. What is no problem of the cluster is told as it is.
func Tell(out io.Writer, err error) {
	why := hosted.Problem{What: "the judge failed: " + err.Error(), Fix: "bin/classroom hosted doctor"}
	if p, ok := errors.AsType[*clusters.Problem](err); ok {
		why = hosted.Problem{What: p.Finding(), Fix: p.Fix}
	}
	_ = json.NewEncoder(out).Encode(hosted.Line{Problem: &why})
}

// artifactsLimit is how much of artifacts goes into the Pod's log, which a kubelet cuts after 10 MiB. They have 100 KB, packed.
const artifactsLimit = 2 << 20

func packArtifacts(dir string) ([]byte, error) {
	files, err := course.ReadTree(dir)
	if err != nil {
		return nil, err
	}
	packed, err := hosted.Pack(files)
	if err == nil && len(packed) > artifactsLimit {
		return nil, fmt.Errorf("they have %d KiB", len(packed)>>10)
	}
	return packed, err
}

// question reads what is asked, and writes the workspace into a folder.
func question(workspace string) (q hosted.Question, err error) {
	file, err := os.Open(hosted.QuestionPath)
	if err != nil {
		return q, err
	}
	defer file.Close()
	if err := hosted.Unpack(file, &q); err != nil {
		return q, err
	}
	return q, q.Workspace.WriteTo(workspace)
}

// controlPlane gives the control planes of this Pod. Beside the programs of the image there is to be a lock: cache becomes a
// folder of links to them.
func controlPlane(state, cache string, progress func(string)) (*embedded.Embedded, error) {
	for _, name := range []string{"components", "embedded"} {
		there, err := os.ReadDir(filepath.Join(CacheDir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		dir := filepath.Join(cache, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		for _, entry := range there {
			if err := os.Symlink(filepath.Join(CacheDir, name, entry.Name()), filepath.Join(dir, entry.Name())); err != nil {
				return nil, err
			}
		}
	}
	return embedded.New(state, CourseDir, cache, embedded.WithLogger(progress))
}

// Prepare makes what the image has ready for verdicts, in a container that is like it: the checks and their tools, what
// learners' programs have in common with the course's solution, and what every control plane begins with.
func Prepare(ctx context.Context, progress func(string)) error {
	c, err := course.Load(CourseDir)
	if err != nil {
		return err
	}
	if _, err := verdict.BuildTools(ctx, CourseDir, outDir); err != nil {
		return err
	}
	if _, err := grade.BuildCache(ctx, c, shim, outDir, progress); err != nil {
		return err
	}
	provider, err := controlPlane(filepath.Join(os.TempDir(), "state"), outDir, progress)
	if err != nil {
		return err
	}
	return provider.Prepare(ctx)
}
