// Package reference compares a workspace with the course's own solution, and says in the course's words
// what the solution does where they differ.
package reference

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fatih/color"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// folders are what a learner writes in. The rest of a project is scaffolded.
var folders = []string{"api", "cmd", "config", "internal"}

// sizeLimit is up to what size a file is compared. Nobody writes larger ones by hand.
const sizeLimit = 64 << 10

// Diff returns what `git diff` says of the workspace and the solution of a lab, with the reasons of the solution below
// the head of each hunk; "" when they do not differ. Only what people write is compared: no generated files, no tests. A
// file that only the workspace has is named. Colours are there on a terminal only, and not with NO_COLOR.
func Diff(ctx context.Context, c *course.Course, workspace string, lab int) (string, error) {
	ours, err := c.Render(lab)
	if err != nil {
		return "", err
	}
	yours, err := course.ReadTreeExcept(workspace, func(path string, d fs.DirEntry) bool {
		if !written(c, path, d.IsDir()) {
			return true
		}
		info, err := d.Info()
		return err == nil && info.Size() > sizeLimit
	})
	if err != nil {
		return "", err
	}
	own := course.Tree{} // what only the workspace has
	for name, file := range yours {
		if _, both := ours[name]; !both || !text(file.Data) {
			delete(yours, name)
			own[name] = file
		}
	}
	for name := range ours {
		if !written(c, name, false) {
			delete(ours, name)
		}
	}
	diff, err := gitDiff(ctx, yours, ours)
	if err != nil {
		return "", fmt.Errorf("compare with the solution: %w", err)
	}
	explained, err := explain(c, lab, diff)
	if err != nil {
		return "", err
	}
	for _, name := range own.Paths() {
		if text(own[name].Data) {
			explained += bold.Sprintln("only yours: " + plain.Line(name))
		}
	}
	return explained, nil
}

func written(c *course.Course, path string, folder bool) bool {
	top, _, _ := strings.Cut(path, "/")
	return slices.Contains(folders, top) && (folder || path != top && c.Written(path))
}

// text says whether data can be compared line by line.
func text(data []byte) bool { return !bytes.ContainsRune(data, 0) }

// gitDiff compares two trees, as git does without anybody's configuration.
func gitDiff(ctx context.Context, yours, ours course.Tree) (string, error) {
	dir, err := os.MkdirTemp("", "lab-diff-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for name, tree := range map[string]course.Tree{"yours": yours, "ours": ours} {
		side := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(side, 0o700), tree.WriteTo(side)); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "git", "diff", "--no-index", "--no-prefix", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--no-color", "yours", "ours")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	var problem bytes.Buffer
	cmd.Stderr = &problem
	diff, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) { // 1: they differ
		return "", fmt.Errorf("git diff: %w: %s", err, strings.TrimSpace(problem.String()))
	}
	return plain.Text(string(diff)), nil
}

// hunkHead is the head of a hunk, with the number of its first line in the solution.
var hunkHead = regexp.MustCompile(`^@@ -\S+ \+(\d+)\S* @@`)

// The colours of git's.
var (
	bold    = color.New(color.Bold)
	hunk    = color.New(color.FgCyan)
	added   = color.New(color.FgGreen)
	removed = color.New(color.FgRed)
)

// explain colours a diff, and adds what the solution is about where it differs: one sentence for each region of the course.
func explain(c *course.Course, lab int, diff string) (string, error) {
	var out, reasons []string
	var passages []course.Passage
	head, line := 0, 0 // where the reasons of the hunk belong in out, and the number of the next line in the solution
	end := func() {
		out = slices.Insert(out, head, reasons...)
		reasons = nil
	}
	for row := range strings.Lines(diff) {
		row = strings.TrimSuffix(row, "\n")
		paint := fmt.Sprint
		begin := hunkHead.FindStringSubmatch(row)
		switch {
		case begin != nil || strings.HasPrefix(row, "diff --git "):
			end()
			line, paint = 0, bold.Sprint
			if begin != nil {
				line, _ = strconv.Atoi(begin[1])
				paint = hunk.Sprint
			}
			head = len(out) + 1
		case line == 0:
			paint = bold.Sprint
			if name, ok := strings.CutPrefix(row, "+++ ours/"); ok {
				var err error
				if passages, err = c.Passages(lab, name); err != nil {
					return "", err
				}
			}
		case strings.HasPrefix(row, " "):
			line++
		case strings.HasPrefix(row, "+"), strings.HasPrefix(row, "-"):
			paint = removed.Sprint
			if reason := about(passages, line); reason != "" && !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
			if strings.HasPrefix(row, "+") {
				paint = added.Sprint
				line++
			}
		}
		out = append(out, paint(row)+"\n")
	}
	end()
	return strings.Join(out, ""), nil
}

// about says what a line of the solution is about, by the innermost passage that it stands in; "" when it stands in none.
func about(passages []course.Passage, line int) string {
	var inner *course.Passage
	for i, p := range passages {
		if p.From <= line && line <= p.To && (inner == nil || p.From >= inner.From && p.To <= inner.To) {
			inner = &passages[i]
		}
	}
	if inner == nil {
		return ""
	}
	return color.New(color.Faint).Sprintf("# lab %d: %s", inner.Region.Lab, inner.Region.Text) + "\n"
}
