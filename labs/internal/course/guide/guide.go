// Package guide keeps the guide for instructors true. It writes what docs/instructor.md says about each lab
// from the manifests and from the wrong answers.
package guide

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
)

// File is the guide, a slash path below the checkout.
const File = "docs/instructor.md"

// What is written stands between these two lines.
const (
	labsBegin = "<!-- labs -->"
	labsEnd   = "<!-- labs end -->"
)

// Lint returns what is wrong with the guide: a part about the labs that is not what it is made from. What is wrong with
// a wrong answer itself, [mutants.Lint] says.
func Lint(c *course.Course) ([]course.Problem, error) {
	text, err := read(c)
	if errors.Is(err, fs.ErrNotExist) {
		return []course.Problem{{File: File, Text: "there is no such file"}}, nil
	} else if err != nil {
		return nil, err
	}
	wrong, err := mutants.Load(c)
	if _, known := errors.AsType[course.Problem](err); known {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	first, after, err := between(text)
	if err != nil {
		return []course.Problem{{File: File, Text: err.Error()}}, nil //nolint:nilerr // it is what the author has to fix
	}
	if text[first:after] == labs(c, wrong) {
		return nil, nil
	}
	return []course.Problem{{
		File: File, Line: 1 + strings.Count(text[:first], "\n"),
		Text: "differs from the manifests and the wrong answers: bin/lab lint --fix rewrites it",
	}}, nil
}

// Fix writes the part about the labs anew and returns the slash paths of the files that it changed. A guide
// without a place for it stays as it is; Lint complains.
func Fix(c *course.Course) (changed []string, err error) {
	text, err := read(c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	first, after, err := between(text)
	if err != nil {
		return nil, nil //nolint:nilerr // Lint says so, and nothing else keeps the others from being fixed
	}
	wrong, err := mutants.Load(c)
	if err != nil {
		return nil, fmt.Errorf("fix %s: %w", File, err)
	}
	fixed := text[:first] + labs(c, wrong) + text[after:]
	if fixed == text {
		return nil, nil
	}
	if err := os.WriteFile(path(c), []byte(fixed), 0o644); err != nil {
		return nil, fmt.Errorf("fix %s: %w", File, err)
	}
	return []string{File}, nil
}

func path(c *course.Course) string { return filepath.Join(c.Root, filepath.FromSlash(File)) }

func read(c *course.Course) (string, error) {
	data, err := os.ReadFile(path(c))
	if err != nil {
		return "", fmt.Errorf("read the guide for instructors: %w", err)
	}
	return string(data), nil
}

// between finds what is written by Fix: text[first:after].
func between(text string) (first, after int, err error) {
	first = strings.Index(text, labsBegin+"\n")
	if first < 0 {
		return 0, 0, fmt.Errorf("has no line %s", labsBegin)
	}
	first += len(labsBegin) + 1
	length := strings.Index(text[first:], labsEnd+"\n")
	if length < 0 {
		return 0, 0, fmt.Errorf("has no line %s below %s", labsEnd, labsBegin)
	}
	return first, first + length, nil
}

// labs is the part about the labs.
func labs(c *course.Course, wrong []*mutants.Mutant) string {
	var b strings.Builder
	for _, lab := range c.Labs {
		fmt.Fprintf(&b, "\n### Lab %d: %s\n\n", lab.Number, lab.Title)
		fmt.Fprintf(&b, "%d minutes (an estimate). [The lesson](../%s/README.md).\n\nSay:\n\n", lab.Minutes, lab.Dir)
		for i, sentence := range lab.Instructor.Say {
			fmt.Fprintf(&b, "%d. %s\n", i+1, sentence)
		}
		b.WriteString("\nThe two mistakes seen most:\n")
		for _, m := range wrong {
			if m.Lab == lab.Number && m.Common {
				b.WriteString("\n" + mistake(c, m))
			}
		}
		fmt.Fprintf(&b, "\nAsk whoever is stuck: **%s**\n", lab.Instructor.Ask)
	}
	return b.String() + "\n"
}

// mistake is what somebody believes, and what they see then.
func mistake(c *course.Course, m *mutants.Mutant) string {
	text := fmt.Sprintf("- They believe: *%s*\n", m.Misconception)
	_, check, err := c.Check(m.Caught)
	if err != nil {
		return text // lint of the wrong answers says so
	}
	text += fmt.Sprintf("  They see: **✗ %s**\n", check.Title)
	if hints := check.Hints[m.Cause]; len(hints) > 0 {
		text += "  First hint: " + hints[0] + "\n"
	}
	return text
}
