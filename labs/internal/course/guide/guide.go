// Package guide keeps the guide for instructors true. It writes what docs/instructor.md says about each lab
// from the manifests.
package guide

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
)

// File is the guide, a slash path below the checkout.
const File = "docs/instructor.md"

// What is written stands between these two lines.
const (
	labsBegin = "<!-- labs -->"
	labsEnd   = "<!-- labs end -->"
)

// Lint returns what is wrong with the guide: a part about the labs that is not what it is made from.
func Lint(c *course.Course) ([]course.Problem, error) {
	have, want, line, err := compare(c)
	if problem, ok := errors.AsType[course.Problem](err); ok {
		return []course.Problem{problem}, nil
	}
	if err != nil || have == want {
		return nil, err
	}
	return []course.Problem{{
		File: File, Line: line, Text: "differs from the manifests: bin/lab lint --fix rewrites it",
	}}, nil
}

// Fix writes the part about the labs anew and returns the slash paths of the files that it changed. A guide
// without a place for it stays as it is; Lint complains.
func Fix(c *course.Course) (changed []string, err error) {
	have, want, _, err := compare(c)
	if _, ok := errors.AsType[course.Problem](err); ok || have == want && err == nil {
		return nil, nil
	}
	if err == nil {
		err = os.WriteFile(path(c), []byte(want), 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("fix %s: %w", File, err)
	}
	return []string{File}, nil
}

func path(c *course.Course) string { return filepath.Join(c.Root, filepath.FromSlash(File)) }

// compare returns the guide as it is, as it should be, and the line at which the part about the labs begins. The error is
// a [course.Problem] when there is no such part.
func compare(c *course.Course) (have, want string, line int, err error) {
	data, err := os.ReadFile(path(c))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", 0, course.Problem{File: File, Text: "there is no such file"}
	} else if err != nil {
		return "", "", 0, fmt.Errorf("read the guide for instructors: %w", err)
	}
	before, rest, ok := strings.Cut(string(data), labsBegin+"\n")
	if !ok {
		return "", "", 0, course.Problem{File: File, Text: "has no line " + labsBegin}
	}
	_, after, ok := strings.Cut(rest, labsEnd+"\n")
	if !ok {
		return "", "", 0, course.Problem{File: File, Text: fmt.Sprintf("has no line %s below %s", labsEnd, labsBegin)}
	}
	before += labsBegin + "\n"
	return string(data), before + labs(c) + labsEnd + "\n" + after, 1 + strings.Count(before, "\n"), nil
}

// labs is the part about the labs.
func labs(c *course.Course) string {
	var b strings.Builder
	for _, lab := range c.Labs {
		fmt.Fprintf(&b, "\n### Lab %d: %s\n\n", lab.Number, lab.Title)
		fmt.Fprintf(&b, "%d minutes (an estimate). [The lesson](../%s/README.md).\n\nSay:\n\n", lab.Minutes, lab.Dir)
		for i, sentence := range lab.Instructor.Say {
			fmt.Fprintf(&b, "%d. %s\n", i+1, sentence)
		}
		fmt.Fprintf(&b, "\nAsk whoever is stuck: **%s**\n", lab.Instructor.Ask)
	}
	return b.String() + "\n"
}
