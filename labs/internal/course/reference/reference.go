// Package reference compares a workspace with the course's own solution, and says in the course's words
// what the solution does where they differ.
package reference

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/example/operator-lab/labs/internal/course"
)

// File is a file in which a workspace and the solution differ.
type File struct {
	// Path is a slash path below the workspace.
	Path string
	// Yours and Ours say which of the two have it.
	Yours, Ours bool
	// Hunks are the differences, the top one first. A file that only the workspace has comes without.
	Hunks []Hunk
}

// Hunk is one difference, and what stands around it.
type Hunk struct {
	// Reasons are what the solution is about here, one sentence each; none where the course has no words.
	Reasons []string
	// Lines begin with a sign: "-" is yours, "+" is the solution's, " " is both.
	Lines []string
	// Yours and Ours are the numbers of the first line in each.
	Yours, Ours int
}

// context is how many lines are shown around a difference.
const context = 3

// folders are what a learner writes in. The rest of a project is scaffolded.
var folders = []string{"api", "cmd", "config", "internal"}

// sizeLimit is up to what size a file is compared. Nobody writes larger ones by hand.
const sizeLimit = 1 << 20

// Compare returns the files in which the workspace differs from the solution of a lab. Only what people
// write is compared: no generated files, no tests.
func Compare(c *course.Course, workspace string, lab int) ([]File, error) {
	ours, err := c.Render(lab)
	if err != nil {
		return nil, err
	}
	yours, err := course.ReadTreeExcept(workspace, func(path string, d fs.DirEntry) bool { return !written(c, path, d.IsDir()) })
	if err != nil {
		return nil, err
	}
	for name := range ours {
		if !written(c, name, false) {
			delete(ours, name)
		}
	}
	var files []File
	for _, name := range yours.Diff(ours) {
		f := File{Path: name}
		var mine, theirs course.File
		mine, f.Yours = yours[name]
		theirs, f.Ours = ours[name]
		if bytes.Equal(mine.Data, theirs.Data) || !text(mine.Data) {
			continue
		}
		if f.Ours {
			passages, err := c.Passages(lab, name)
			if err != nil {
				return nil, err
			}
			f.Hunks = hunks(string(mine.Data), string(theirs.Data), passages)
		}
		files = append(files, f)
	}
	return files, nil
}

func written(c *course.Course, path string, folder bool) bool {
	top, _, _ := strings.Cut(path, "/")
	return slices.Contains(folders, top) && (folder || path != top && c.Written(path))
}

// text says whether data can be compared line by line.
func text(data []byte) bool { return len(data) <= sizeLimit && !bytes.ContainsRune(data, 0) }

// hunks compares two texts.
func hunks(yours, ours string, passages []course.Passage) []Hunk {
	a, b := lines(yours), lines(ours)
	var result []Hunk
	for _, group := range difflib.NewMatcher(a, b).GetGroupedOpCodes(context) {
		h := Hunk{Yours: group[0].I1 + 1, Ours: group[0].J1 + 1}
		for _, op := range group {
			if op.Tag == 'e' {
				h.Lines = append(h.Lines, signed(" ", a[op.I1:op.I2])...)
				continue
			}
			h.Lines = append(h.Lines, signed("-", a[op.I1:op.I2])...)
			h.Lines = append(h.Lines, signed("+", b[op.J1:op.J2])...)
			for _, reason := range reasons(passages, op.J1+1, max(op.J1+1, op.J2)) {
				if !slices.Contains(h.Reasons, reason) {
					h.Reasons = append(h.Reasons, reason)
				}
			}
		}
		result = append(result, h)
	}
	return result
}

// lines splits a text. An empty one has none.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func signed(sign string, lines []string) []string {
	var result []string
	for _, line := range lines {
		result = append(result, sign+line)
	}
	return result
}

// reasons are the texts of the passages that lines of the solution stand in. Where one encloses another,
// only the inner one is named.
func reasons(passages []course.Passage, from, to int) []string {
	var touched []course.Passage
	for _, p := range passages {
		if p.From > to || p.To < from {
			continue
		}
		touched = slices.DeleteFunc(touched, func(outer course.Passage) bool {
			return outer.From <= p.From && p.To <= outer.To && p.From <= from && to <= p.To
		})
		touched = append(touched, p)
	}
	var texts []string
	for _, p := range touched {
		texts = append(texts, fmt.Sprintf("lab %d: %s", p.Region.Lab, p.Region.Text))
	}
	return texts
}
