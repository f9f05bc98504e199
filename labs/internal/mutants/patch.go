package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/example/operator-lab/labs/internal/course"
)

// patch is a diff of the annotated operator.
type patch []*gitdiff.File

// markerLine is a line that begins, divides or ends a region of the course. Patches leave those alone:
// a wrong answer is wrong in the learner's part, not in the course's.
var markerLine = regexp.MustCompile(`\blab:[0-9]+ (begin|before|end)\b`)

func parsePatch(diff []byte) (patch, error) {
	files, _, err := gitdiff.Parse(bytes.NewReader(diff))
	if err != nil {
		return nil, fmt.Errorf("diff: %s", strings.TrimPrefix(err.Error(), "gitdiff: "))
	}
	if len(files) == 0 {
		return nil, errors.New(`diff: there is none: it begins with a line "diff --git a/... b/..."`)
	}
	for _, f := range files {
		if f.IsBinary {
			return nil, fmt.Errorf("diff: %s: is binary", f.NewName)
		}
		for i, hunk := range f.TextFragments {
			for _, line := range hunk.Lines {
				if line.Op != gitdiff.OpContext && markerLine.MatchString(line.Line) {
					return nil, fmt.Errorf("diff: %s: hunk %d: changes a marker: %s", name(f), i+1, strings.TrimSpace(line.Line))
				}
			}
		}
	}
	return files, nil
}

// name is the file's path below operator/, as it is before the patch if it exists there.
func name(f *gitdiff.File) string {
	if f.OldName != "" {
		return f.OldName
	}
	return f.NewName
}

// apply changes tree. Every line that the patch names has to be there, character by character; where
// lines were added or taken out above it, a hunk is found again if its lines stand in one place only.
func (p patch) apply(tree course.Tree) error {
	for _, f := range p {
		if err := applyFile(tree, f); err != nil {
			return fmt.Errorf("%s/%s: %w", course.SourceDir, name(f), err)
		}
	}
	return nil
}

func applyFile(tree course.Tree, f *gitdiff.File) error {
	file, exists := tree[f.OldName]
	switch {
	case f.IsNew:
		if _, exists := tree[f.NewName]; exists {
			return errors.New("exists already")
		}
		file = course.File{Mode: course.NormalMode(f.NewMode)}
	case !exists:
		return errors.New("there is no such file")
	case !f.IsCopy:
		delete(tree, f.OldName)
	}
	data, err := changed(file.Data, f)
	if err != nil {
		return err
	}
	if f.IsDelete {
		return nil
	}
	if f.NewMode != 0 {
		file.Mode = course.NormalMode(f.NewMode)
	}
	file.Data = data
	tree[f.NewName] = file
	return nil
}

// changed is the content of a file after its hunks.
func changed(data []byte, f *gitdiff.File) ([]byte, error) {
	lines := strings.SplitAfter(string(data), "\n")
	placed := *f
	placed.TextFragments = nil
	for i, hunk := range f.TextFragments {
		at, err := place(lines, hunk)
		if err != nil {
			return nil, fmt.Errorf("hunk %d: %w", i+1, err)
		}
		moved := *hunk
		moved.OldPosition = at
		placed.TextFragments = append(placed.TextFragments, &moved)
	}
	var out bytes.Buffer
	err := gitdiff.Apply(&out, bytes.NewReader(data), &placed)
	if at := (*gitdiff.ApplyError)(nil); errors.As(err, &at) && at.Fragment > 0 {
		err = fmt.Errorf("hunk %d: %w", at.Fragment, err)
	}
	return out.Bytes(), err
}

// place returns where the lines begin that a hunk takes out or leaves, counted from 1.
func place(lines []string, hunk *gitdiff.TextFragment) (int64, error) {
	var old []string
	for _, line := range hunk.Lines {
		if line.Op != gitdiff.OpAdd {
			old = append(old, line.Line)
		}
	}
	if len(old) == 0 {
		return hunk.OldPosition, nil
	}
	var found []int64
	for i := 0; i+len(old) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(old)], old) {
			found = append(found, int64(i)+1)
		}
	}
	switch {
	case slices.Contains(found, hunk.OldPosition):
		return hunk.OldPosition, nil
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return 0, fmt.Errorf("its lines stand in %d places: give it more context", len(found))
	}
	return 0, missing(lines, old, hunk.OldPosition)
}

// missing says which line of a hunk is not where the hunk says.
func missing(lines, old []string, from int64) error {
	for i, want := range old {
		at := int(from) - 1 + i
		if at >= len(lines) || at < 0 {
			return fmt.Errorf("line %d is %q in the patch, and the file ends before it", at+1, strings.TrimSpace(want))
		}
		if lines[at] != want {
			return fmt.Errorf("line %d is %q in the patch and %q in the file", at+1, strings.TrimSpace(want), strings.TrimSpace(lines[at]))
		}
	}
	return errors.New("its lines are not in the file")
}
