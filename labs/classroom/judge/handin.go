package judge

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// HandInCommand is that of the program that calls [CheckHandIn], and ReadyCommand one that does nothing.
const (
	HandInCommand = "hand-in"
	ReadyCommand  = "ready"
)

// HandInPath is where a container for grading has what a learner handed in: a folder, or a zip.
const HandInPath = "/lab/hand-in"

// HandIn is what a container says about it.
type HandIn struct {
	// Results are one for each lab that was to be judged, in their order.
	Results []*verdict.Result `json:"results,omitempty"`
	// Refused is why nothing can be judged, which is the learner's to fix.
	Refused string `json:"refused,omitempty"`
	// Problem is what kept the container from a verdict.
	Problem *hosted.Problem `json:"problem,omitempty"`
}

// CheckHandIn judges labs of what was handed in, in a container that has nothing else to lose, and writes a [HandIn] to out.
func CheckHandIn(ctx context.Context, labs []int, seed int64, out io.Writer, progress func(string)) error {
	results, err := checkHandIn(ctx, labs, seed, progress)
	answer := HandIn{Results: results}
	if theirs := (*refusal)(nil); errors.As(err, &theirs) {
		answer.Refused = theirs.Error()
	} else if err != nil {
		answer.Problem = hosted.ProblemOf(err)
	}
	return json.NewEncoder(out).Encode(answer)
}

func checkHandIn(ctx context.Context, labs []int, seed int64, progress func(string)) ([]*verdict.Result, error) {
	work, err := os.MkdirTemp("", "hand-in-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the verdict: %w", err)
	}
	c, err := course.Load(CourseDir)
	if err != nil {
		return nil, err
	}
	workspace, err := open(HandInPath, filepath.Join(work, "unpacked"))
	if err != nil {
		return nil, err
	}
	cache, state := filepath.Join(work, "cache"), filepath.Join(work, "state")
	provider, err := controlPlane(state, cache, progress)
	if err != nil {
		return nil, err
	}
	judge := verdict.Judge{
		Course: c, State: state, Cache: cache, Workspace: workspace, Clusters: clusters.NewOwned(state, provider),
		Tools: verdict.ToolsIn(BinDir), Seed: seed, Progress: progress,
	}
	var all []*verdict.Result
	for _, together := range groups(c, labs) {
		results, err := judge.Check(ctx, together)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	slices.SortFunc(all, func(a, b *verdict.Result) int { return a.Lab - b.Lab })
	return all, nil
}

// groups are the labs that one run can judge together. A lab that runs others again does that under the learner's own
// role, in which the others alone are not judged.
func groups(c *course.Course, labs []int) (groups [][]int) {
	var together []int
	for _, n := range labs {
		if len(c.Labs[n-1].Reruns) > 0 {
			groups = append(groups, []int{n})
		} else {
			together = append(together, n)
		}
	}
	if len(together) > 0 {
		groups = append(groups, together)
	}
	return groups
}

type refusal struct{ error }

// open finds the learner's module: in the folder itself, in its folder workspace (a whole checkout), or in the one folder that
// is all that there is. A zip is unpacked to a new folder.
func open(handIn, unpacked string) (workspace string, err error) {
	if info, err := os.Stat(handIn); err != nil {
		return "", err
	} else if !info.IsDir() {
		if err := unzip(handIn, unpacked); err != nil {
			return "", &refusal{fmt.Errorf("the zip cannot be unpacked: %w", err)}
		}
		handIn = unpacked
	}
	for _, dir := range []string{handIn, filepath.Join(handIn, "workspace")} {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	entries, err := os.ReadDir(handIn)
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), ".") || e.Name() == "__MACOSX"
	})
	if err == nil && len(entries) == 1 && entries[0].IsDir() {
		return open(filepath.Join(handIn, entries[0].Name()), "")
	}
	return handIn, err
}

// unzip writes the files of a zip to a new folder. A name that is no UTF-8, as Windows in Korea writes it, is a little changed.
func unzip(file, dir string) error {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range archive.File {
		name := path.Clean(strings.ReplaceAll(strings.ToValidUTF8(f.Name, "_"), `\`, "/"))
		if strings.HasSuffix(f.Name, "/") {
			err = root.MkdirAll(name, 0o755)
		} else {
			err = extract(f, root, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func extract(f *zip.File, root *os.Root, name string) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	to, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
