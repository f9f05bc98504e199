package deepcopy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/harness/probe"
	"github.com/example/operator-lab/labs/internal/finding"
)

// hasGenerated asks whether the workspace has the code that the generator makes, file by file.
func hasGenerated(workspace string, code map[string]string) error {
	for _, path := range slices.Sorted(maps.Keys(code)) {
		have, err := os.ReadFile(filepath.Join(workspace, filepath.FromSlash(path)))
		if errors.Is(err, fs.ErrNotExist) {
			return finding.New("missing", path, "no such file")
		}
		if err != nil {
			return fmt.Errorf("read generated code: %w", err)
		}
		expected := path + " as controller-gen makes it of today's types"
		difference, err := generate.DiffCode(string(have), code[path])
		switch {
		case err != nil:
			return finding.New("hand-edited", expected, "%v", err)
		case difference != nil && difference.Stale:
			return finding.New("stale", expected, "%s", difference.Diff)
		case difference != nil:
			return finding.New("hand-edited", expected, "%s", difference.Diff)
		}
	}
	return nil
}

// sharesNothing judges what was found out about the copies of one kind.
func sharesNothing(kind string, copies []probe.Copy) error {
	for _, c := range copies {
		expected := fmt.Sprintf("%s of a %s that shares nothing with the original and equals it", c.Method, kind)
		switch {
		case c.Missing != "":
			return finding.New("does-not-build", expected, "%s", c.Missing)
		case c.Panic != "":
			return finding.New("panicked", expected, "panic: %s", places(c.Panic, env.Run().Workspace))
		case len(c.Shared) > 0:
			return finding.New(sharedCause(c.Shared), expected, "a change of the copy changes the original's %s", strings.Join(c.Shared, ", "))
		case len(c.Lost) > 0:
			return finding.New("loses-data", expected, "the copy has another %s", strings.Join(c.Lost, ", "))
		}
	}
	return nil
}

// sharedCause names the array of a list, the field that lab 1 added, or anything else.
func sharedCause(paths []string) string {
	has := func(part string) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return strings.Contains(path, part) })
	}
	switch {
	case has("items[") && has(".spec"):
		return "shares-items"
	case has("status.conditions"):
		return "shares-conditions"
	}
	return "shares-memory"
}

// places keeps the message of a panic and those lines of its stack that name the learner's own code.
func places(stack, workspace string) string {
	var lines []string
	for line := range strings.Lines(stack) {
		place, own := strings.CutPrefix(strings.TrimSpace(line), workspace+string(filepath.Separator))
		if len(lines) == 0 || (own && !strings.Contains(place, "labprobe")) {
			lines = append(lines, place)
		}
	}
	return strings.Join(lines, "\n")
}
