// Package judge is the inside of a container that judges: what it needs, what happens in there, and its image (labs/hosted).
package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// ReadyCommand is that of the image's program that does nothing.
const ReadyCommand = "ready"

// Check judges labs of what lies at [hosted.HandInPath], in a container that has nothing else to lose, and writes a [hosted.Answer]
// to out. In a Pod, it judges nothing where that is not cut off. An error means that ctx has ended, or nobody reads.
func Check(ctx context.Context, labs []int, seed int64, out io.Writer, progress func(string)) error {
	results, err := check(ctx, labs, seed, progress)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	answer := hosted.Answer{Results: results}
	if theirs := (*refusal)(nil); errors.As(err, &theirs) {
		answer.Refused = theirs.Error()
	} else if err != nil {
		answer.Problem = hosted.ProblemOf(err)
	}
	return json.NewEncoder(out).Encode(answer)
}

func check(ctx context.Context, labs []int, seed int64, progress func(string)) ([]*verdict.Result, error) {
	if node := os.Getenv(hosted.NodeEnv); node != "" {
		if err := requireClosed(ctx, node); err != nil {
			return nil, err
		}
	}
	work, err := os.MkdirTemp("", "judge-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the verdict: %w", err)
	}
	workspace, err := open(hosted.HandInPath, filepath.Join(work, "unpacked"))
	if err != nil {
		return nil, err
	}
	judge, err := newJudge(work, workspace, progress)
	if err != nil {
		return nil, err
	}
	judge.Seed = seed
	var all []*verdict.Result
	for _, together := range groups(judge.Course, labs) {
		results, err := judge.Check(ctx, together)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	slices.SortFunc(all, func(a, b *verdict.Result) int { return a.Lab - b.Lab })
	return all, nil
}

// groups are the labs that one run can judge together. From one lab on the
// manager works under the learner's own role, in which the labs before it are not judged.
func groups(c *course.Course, labs []int) (groups [][]int) {
	before, under := []int{}, []int{}
	for _, n := range labs {
		if c.UnderRole(n) {
			under = append(under, n)
		} else {
			before = append(before, n)
		}
	}
	return slices.DeleteFunc([][]int{before, under}, func(group []int) bool { return len(group) == 0 })
}

// newJudge judges a workspace in this container; what it writes is in the folder work, and in Go's build cache. Those have links to
// what was compiled before, where nobody can write.
func newJudge(work, workspace string, progress func(string)) (*verdict.Judge, error) {
	c, err := course.Load(CourseDir)
	if err != nil {
		return nil, err
	}
	cache, state, goCache := filepath.Join(work, "cache"), filepath.Join(work, "state"), os.Getenv("GOCACHE")
	if err := link(filepath.Join(CacheDir, "components"), filepath.Join(cache, "components")); err != nil {
		return nil, err
	}
	for i := range 256 { // the folders of a build cache
		name := fmt.Sprintf("%02x", i)
		if err := link(filepath.Join(CacheDir, builtDir, name), filepath.Join(goCache, name)); err != nil {
			return nil, err
		}
	}
	// Else the Go command removes what nobody has used for days, by the times of the files.
	if err := os.WriteFile(filepath.Join(goCache, "trim.txt"), fmt.Append(nil, time.Now().Unix()), 0o644); err != nil {
		return nil, err
	}
	manager, err := embedded.NewManager(state, cache, progress)
	if err != nil {
		return nil, err
	}
	return &verdict.Judge{
		Course: c, State: state, Cache: cache, Workspace: workspace, Clusters: manager,
		Tools: verdict.ToolsIn(BinDir), Progress: progress,
	}, nil
}

// link makes a folder with links to what is in another one, if that is there.
func link(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	errs := []error{os.MkdirAll(to, 0o755)}
	for _, entry := range entries {
		errs = append(errs, os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())))
	}
	return errors.Join(errs...)
}
