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
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Check judges in a Pod of the judge's image what it is asked ([hosted.Request]), and writes lines to out ([hosted.Event]).
// What it needs of the disk it takes in the folder for temporary files. An error means that there is no result.
func Check(ctx context.Context, out io.Writer) (verdict.Verdict, error) {
	work, err := os.MkdirTemp("", "judge-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the verdict: %w", err)
	}
	defer os.RemoveAll(work)
	if err := requireClosed(ctx); err != nil {
		return "", err
	}
	q, err := request(filepath.Join(work, "workspace"))
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
	progress := func(line string) { _ = lines.Encode(hosted.Event{Progress: line}) }
	cache, state := filepath.Join(work, "cache"), filepath.Join(work, "state")
	provider, err := controlPlane(state, cache, progress)
	if err != nil {
		return "", err
	}
	judge := verdict.Judge{
		Course: c, State: state, Cache: cache, Workspace: filepath.Join(work, "workspace"), Clusters: clusters.NewOwned(state, provider),
		Tools: verdict.ToolsIn(BinDir), Seed: q.Seed, Storm: q.Storm, Progress: progress,
		OnOutcome: func(o verdict.Outcome) { _ = lines.Encode(hosted.Event{Outcome: &o}) },
	}
	results, err := judge.Check(ctx, q.Labs)
	if err != nil {
		return "", err
	}
	artifacts, err := packArtifacts(results[0].Artifacts)
	if err != nil {
		progress(fmt.Sprintf("could not send the artifacts: %v", err))
	}
	result := hosted.Result{Results: results, Artifacts: artifacts, Cost: cost()}
	return verdict.Worst(results), lines.Encode(hosted.Event{Result: &result})
}

// Tell writes what kept a judge from its verdict.
func Tell(out io.Writer, err error) {
	_ = json.NewEncoder(out).Encode(hosted.Event{Problem: hosted.ProblemOf(err)})
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

// request reads what is asked, and writes the workspace into a folder.
func request(workspace string) (q hosted.Request, err error) {
	file, err := os.Open(hosted.RequestPath)
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
