package deepcopy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/harness/probe/sharing"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
)

// shown is how many differences of one file are listed.
const shown = 4

// hasGenerated asks whether the workspace has the code that the generator makes, file by file.
func hasGenerated(workspace string, code map[string]string) error {
	if len(code) == 0 {
		return finding.New("generator-failed", "types that need deep copies", "controller-gen makes none: is the object:generate marker still in the package?")
	}
	for _, path := range slices.Sorted(maps.Keys(code)) {
		have, err := plain.ReadFile(filepath.Join(workspace, filepath.FromSlash(path)))
		if errors.Is(err, fs.ErrNotExist) {
			return finding.New("missing", path, "no such file")
		}
		if err != nil {
			return fmt.Errorf("read generated code: %w", err)
		}
		if err := isGenerated(path, string(have), code[path]); err != nil {
			return err
		}
	}
	return nil
}

func isGenerated(path, have, want string) error {
	expected := path + " as controller-gen makes it of today's types"
	differences, err := generate.CodeDifferences(have, want)
	if err != nil {
		return finding.New("hand-edited", expected, "%v", err)
	}
	if len(differences) == 0 {
		return nil
	}
	var lines []string
	for _, d := range differences[:min(len(differences), shown)] {
		lines = append(lines, d.String())
	}
	if more := len(differences) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return finding.New(origin(differences), expected, "%s", strings.Join(lines, "\n"))
}

// origin tells code that older types explain from code that nobody generated.
func origin(differences []generate.CodeDifference) string {
	for _, d := range differences {
		if d.Kind != generate.Changed || len(d.Lacks)+len(d.Leftovers) > 0 {
			return "stale"
		}
	}
	return "hand-edited"
}

// sharesNothing judges what was found out about the copies of one kind. references are fields that
// must have been there to be shared: without them nothing is shown.
func sharesNothing(kind string, report sharing.Report, references ...string) error {
	for _, c := range report.Copies {
		if err := rightCopy(kind, c); err != nil {
			return err
		}
	}
	for _, reference := range references {
		if !slices.Contains(report.Filled, reference) {
			return finding.New("other", fmt.Sprintf("%s of a %s to look at", reference, kind),
				"the type has no such field (lab 1 asks for it); it has %s", strings.Join(report.Filled, ", "))
		}
	}
	return nil
}

func rightCopy(kind string, c sharing.Copy) error {
	expected := fmt.Sprintf("%s of a %s that shares nothing with the original and equals it", c.Method, kind)
	switch {
	case c.Missing != "":
		return finding.New("does-not-build", expected, "%s", c.Missing)
	case c.Panic != "":
		return finding.New("panicked", expected, "panic: %s", places(c.Panic, env.Run().Workspace))
	case len(c.Shared) > 0:
		return finding.New(sharedCause(c.Shared), expected, "both have the same %s", strings.Join(c.Shared, ", "))
	case len(c.Lost) > 0:
		return finding.New("loses-data", expected, "the copy has another %s", strings.Join(c.Lost, ", "))
	case len(c.Spoilt) > 0:
		return finding.New("other", expected, "copying changed the original's %s", strings.Join(c.Spoilt, ", "))
	}
	return nil
}

// places keeps the message of a panic and those lines of its stack that name the learner's own code.
func places(stack, workspace string) string {
	prefix := workspace + string(filepath.Separator)
	var lines []string
	for line := range strings.Lines(stack) {
		line = strings.TrimSpace(line)
		place, own := strings.CutPrefix(line, prefix)
		if len(lines) == 0 || (own && !strings.Contains(place, "labprobe")) {
			lines = append(lines, place)
		}
	}
	return strings.Join(lines, "\n")
}

// sharedCause names the field that lab 1 added, the array of a list, or anything else.
func sharedCause(paths []string) string {
	switch {
	case slices.Contains(paths, "Items"):
		return "shares-items"
	case slices.ContainsFunc(paths, func(p string) bool { return strings.HasSuffix(p, "Status.Conditions") }):
		return "shares-conditions"
	}
	return "shares-memory"
}
