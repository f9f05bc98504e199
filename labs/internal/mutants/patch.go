package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
)

// patch is a diff of the annotated operator, as git writes it.
type patch []byte

// changedMarker is a line of a diff that adds or removes a line that begins, divides or ends a region of the course.
// Patches leave those alone: a wrong answer is wrong in the learner's part, not in the course's.
var changedMarker = regexp.MustCompile(`(?m)^[+-].*\blab:[0-9]+ (?:begin|before|end)\b.*$`)

func parsePatch(diff []byte) (patch, error) {
	if !bytes.Contains(diff, []byte("diff --git a/")) {
		return nil, errors.New(`diff: there is none: it begins with a line "diff --git a/... b/..."`)
	}
	if line := changedMarker.Find(diff); line != nil {
		return nil, fmt.Errorf("diff: changes a marker: %s", line)
	}
	return diff, nil
}

// apply returns the tree after `git apply`. Every line that the patch names has to be there, character by character;
// where lines were added or removed above it, git finds a hunk again.
func (p patch) apply(ctx context.Context, tree course.Tree) (course.Tree, error) {
	dir, err := os.MkdirTemp("", "wrong-answer-")
	if err != nil {
		return nil, fmt.Errorf("apply patch: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := tree.WriteTo(dir); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "git", "apply", "--whitespace=nowarn", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(p)
	// Neither a repository around the folder nor somebody's own settings matter.
	cmd.Env = append(os.Environ(), "GIT_DIR="+os.DevNull, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		if len(out) == 0 {
			return nil, fmt.Errorf("git apply: %w", err)
		}
		return nil, fmt.Errorf("git apply, in %s: %s", course.SourceDir, strings.Join(strings.Fields(string(out)), " "))
	}
	return course.ReadTree(dir)
}
