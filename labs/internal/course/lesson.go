package course

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A lesson never repeats by hand what is written elsewhere. It has quotes:
//
//	<!-- snippet: fetch -->
//	```go
//	(the region fetch of operator/)
//	```
//
//	<!-- contract: 4 -->
//	(what docs/contract-card.md says under "## Lab 4: ...")
//	<!-- contract end -->
//
// Lint compares them with their source, FixLessons rewrites them.
const (
	contractFile  = "docs/contract-card.md"
	checksHeading = "## What is checked"
)

var (
	quoteComment = regexp.MustCompile(`^(\s*)<!--\s*(snippet|contract):\s*(\S*)\s*-->\s*$`)
	contractEnd  = regexp.MustCompile(`^\s*<!--\s*contract end\s*-->\s*$`)
	codeFence    = regexp.MustCompile("^\\s*(```+)")
	checkItem    = regexp.MustCompile("^- `([a-z][a-z0-9-]*)`:")
)

// quote is a part of a document that must equal its source.
type quote struct {
	kind, name   string // "snippet" and a region, "contract" and a lab
	line         int    // of the comment, from 1
	indent       string
	first, after int // the quoted lines are lines[first:after]
}

// findQuotes finds the quotes of a document.
func findQuotes(file string, lines []string) (found []quote, problems []Problem) {
	for i := 0; i < len(lines); i++ {
		m := quoteComment.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		q := quote{kind: m[2], name: m[3], line: i + 1, indent: m[1]}
		if !q.locate(lines) {
			problems = append(problems, Problem{file, q.line, q.shape()})
			continue
		}
		found = append(found, q)
		i = q.after
	}
	return found, problems
}

// shape says what a quote of this kind looks like.
func (q *quote) shape() string {
	if q.kind == "snippet" {
		return "a code block (```) follows a snippet comment at once, and ends"
	}
	return "a contract comment is followed by <!-- contract end -->"
}

// locate finds the lines between the comment and the end of the quote.
func (q *quote) locate(lines []string) bool {
	open := q.line // the line after the comment, from 0
	if q.kind == "contract" {
		q.first, q.after = open, findLine(lines, open, contractEnd.MatchString)
		return q.after >= 0
	}
	if open >= len(lines) {
		return false
	}
	fence := codeFence.FindStringSubmatch(lines[open])
	if fence == nil {
		return false
	}
	q.first = open + 1
	q.after = findLine(lines, q.first, func(line string) bool { return strings.TrimSpace(line) == fence[1] })
	return q.after >= 0
}

// findLine returns the first line from start on that is meant, or -1.
func findLine(lines []string, start int, meant func(string) bool) int {
	for i := start; i < len(lines); i++ {
		if meant(lines[i]) {
			return i
		}
	}
	return -1
}

// source returns the lines that the quote must have.
func (q *quote) source(c *Course) ([]string, error) {
	if q.kind == "contract" {
		text, err := c.Contract(q.name)
		return strings.Split("\n"+text, "\n"), err
	}
	code, err := c.Snippet(q.name)
	lines := strings.Split(strings.TrimSuffix(code, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = q.indent + line
		}
	}
	return lines, err
}

// Contract returns what the contract card says under "## Lab N: ...", ending
// with a line end.
func (c *Course) Contract(lab string) (string, error) {
	if n, err := strconv.Atoi(lab); err != nil || n < 1 || n > len(c.Labs) {
		return "", fmt.Errorf("contract: %q is no lab: the labs are 1 to %d", lab, len(c.Labs))
	}
	data, err := os.ReadFile(filepath.Join(c.Root, filepath.FromSlash(contractFile)))
	if err != nil {
		return "", fmt.Errorf("read the contract card: %w", err)
	}
	lines := strings.Split(string(data), "\n")
	first := findLine(lines, 0, func(line string) bool { return strings.HasPrefix(line, "## Lab "+lab+":") }) + 1
	if first == 0 {
		return "", fmt.Errorf("%s has no heading %q", contractFile, "## Lab "+lab+": ...")
	}
	after := findLine(lines, first, func(line string) bool { return strings.HasPrefix(line, "## ") })
	if after < 0 {
		after = len(lines)
	}
	return strings.TrimSpace(strings.Join(lines[first:after], "\n")) + "\n", nil
}

// Snippet returns the text of a region for a lesson: as it stands at the
// region's own lab, without marker lines, TODOs and common indentation, ending
// with a line end.
func (c *Course) Snippet(id string) (string, error) {
	s, err := c.source()
	if err != nil {
		return "", err
	}
	r := s.regions[id]
	if r == nil {
		return "", fmt.Errorf("there is no region %q in %s/", id, SourceDir)
	}
	return dedent(r.render(r.Lab, false)), nil
}

// dedent takes away the white space that all lines with text begin with.
func dedent(text string) string {
	lines := strings.Split(text, "\n")
	common, first := "", true
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if first {
			common, first = indent, false
		}
		for !strings.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(line, common), " \t")
	}
	return strings.Join(lines, "\n")
}

// requote returns a document with its quotes as their sources have them, and says what is wrong with it. A quote
// without a source stays as it is.
func (c *Course) requote(file, text string) (fixed string, problems []Problem) {
	lines := strings.Split(text, "\n")
	found, problems := findQuotes(file, lines)
	var out []string
	done := 0
	for _, q := range found {
		want, err := q.source(c)
		if err != nil {
			problems = append(problems, Problem{file, q.line, err.Error()})
			continue
		}
		if !slices.Equal(want, lines[q.first:q.after]) {
			problems = append(problems, Problem{file, q.line,
				fmt.Sprintf("differs from %s %s: bin/lab lint --fix rewrites it", q.origin(), q.name)})
		}
		out = append(append(out, lines[done:q.first]...), want...)
		done = q.after
	}
	return strings.Join(append(out, lines[done:]...), "\n"), problems
}

func (q *quote) origin() string {
	if q.kind == "contract" {
		return "the contract card's lab"
	}
	return "region"
}

// FixLessons rewrites the quotes in all lessons and documents and returns the
// slash paths of the files that it changed.
func (c *Course) FixLessons() (changed []string, err error) {
	documents, err := c.documents()
	if err != nil {
		return nil, err
	}
	for _, file := range documents {
		name := filepath.Join(c.Root, filepath.FromSlash(file))
		text, err := os.ReadFile(name)
		if err != nil {
			return changed, fmt.Errorf("fix lessons: %w", err)
		}
		fixed, _ := c.requote(file, string(text))
		if fixed == string(text) {
			continue
		}
		if err := os.WriteFile(name, []byte(fixed), 0o644); err != nil {
			return changed, fmt.Errorf("fix lessons: %w", err)
		}
		changed = append(changed, file)
	}
	return changed, nil
}

// documents are the lessons and what else is written in Markdown: in the
// checkout's top folder, in labs/ and its folders, and in docs/. Slash paths
// below the checkout.
func (c *Course) documents() (files []string, err error) {
	for _, pattern := range []string{"*.md", "labs/*.md", "labs/*/*.md", "docs/*.md"} {
		found, err := fs.Glob(os.DirFS(c.Root), pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, errors.New("the course has no lessons")
	}
	return files, nil
}

// lessonChecks returns the ids in a lesson's list of checks: the items
//
//   - `creates-deployment`: a Deployment of the same name appears.
//
// under the heading "What is checked".
func lessonChecks(text string) (ids []string) {
	_, text, _ = strings.Cut(text, checksHeading+"\n")
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "## ") {
			break
		}
		if m := checkItem.FindStringSubmatch(line); m != nil {
			ids = append(ids, m[1])
		}
	}
	return ids
}
