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
)

// folders are what a learner writes in. The rest of a project is scaffolded.
var folders = []string{"api", "cmd", "config", "internal"}

// sizeLimit is up to what size a file is compared. Nobody writes larger ones by hand.
const sizeLimit = 1 << 20

// Diff returns what `git diff` says of the workspace and the solution of a lab, with the reasons of the solution below
// the head of each hunk; "" when they do not differ. Only what people write is compared: no generated files, no tests. A
// file that only the workspace has is named. Colours are there on a terminal only, and not with NO_COLOR.
func Diff(ctx context.Context, c *course.Course, workspace string, lab int) (string, error) {
	ours, err := c.Render(lab)
	if err != nil {
		return "", err
	}
	yours, err := course.ReadTreeExcept(workspace, func(path string, d fs.DirEntry) bool { return !written(c, path, d.IsDir()) })
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
			explained += color.New(color.Bold).Sprintln("only yours: " + name)
		}
	}
	return explained, nil
}

func written(c *course.Course, path string, folder bool) bool {
	top, _, _ := strings.Cut(path, "/")
	return slices.Contains(folders, top) && (folder || path != top && c.Written(path))
}

// text says whether data can be compared line by line.
func text(data []byte) bool { return len(data) <= sizeLimit && !bytes.ContainsRune(data, 0) }

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
	colored := "--color=always"
	if color.NoColor {
		colored = "--color=never"
	}
	cmd := exec.CommandContext(ctx, "git", "diff", "--no-index", "--no-prefix", "--no-renames", "--no-ext-diff", "--no-textconv",
		colored, "yours", "ours")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	var problem bytes.Buffer
	cmd.Stderr = &problem
	diff, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) { // 1: they differ
		return "", fmt.Errorf("git diff: %w: %s", err, strings.TrimSpace(problem.String()))
	}
	return string(diff), nil
}

var (
	// paint is what colours a terminal's text.
	paint = regexp.MustCompile("\x1b\\[[0-9;]*m")
	// hunkHead is the head of a hunk, with the number of its first line in the solution.
	hunkHead = regexp.MustCompile(`^@@ -\S+ \+(\d+)\S* @@`)
)

// explain adds to a diff what the solution is about where it differs: one sentence for each region of the course.
func explain(c *course.Course, lab int, diff string) (string, error) {
	var out, reasons []string
	var passages []course.Passage
	head, line := 0, 0 // where the reasons of the hunk belong in out, and the number of the next line in the solution
	end := func() {
		out = slices.Insert(out, head, reasons...)
		reasons = nil
	}
	for colored := range strings.Lines(diff) {
		plain := paint.ReplaceAllString(strings.TrimSuffix(colored, "\n"), "")
		begin := hunkHead.FindStringSubmatch(plain)
		switch {
		case begin != nil || strings.HasPrefix(plain, "diff --git "):
			end()
			line = 0
			if begin != nil {
				line, _ = strconv.Atoi(begin[1])
			}
			head = len(out) + 1
		case line == 0:
			if name, ok := strings.CutPrefix(plain, "+++ ours/"); ok {
				var err error
				if passages, err = c.Passages(lab, name); err != nil {
					return "", err
				}
			}
		case strings.HasPrefix(plain, " "):
			line++
		case strings.HasPrefix(plain, "+"), strings.HasPrefix(plain, "-"):
			if reason := about(passages, line); reason != "" && !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
			if strings.HasPrefix(plain, "+") {
				line++
			}
		}
		out = append(out, colored)
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
