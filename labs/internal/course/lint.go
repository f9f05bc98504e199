package course

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Lint returns what is wrong with the course and can be seen without running anything. It looks at regions, quoted code, links, hints,
// and the parts of a lesson; manifests, lessons and Go files have to name the same checks. [Load] refuses mistakes in a manifest.
func (c *Course) Lint() ([]Problem, error) {
	s, err := c.source()
	if problem, ok := errors.AsType[Problem](err); ok {
		return []Problem{problem}, nil // nothing else can be trusted
	}
	documents, readErr := c.read("*.md", "labs/*.md", "labs/*/*.md", "docs/*.md")
	if err := cmp.Or(err, readErr); err != nil {
		return nil, err
	}
	l := &linter{Course: c, regions: s.regions}
	for file, text := range documents {
		l.lintQuotes(file, text)
		l.lintLinks(file, text)
	}
	for _, lab := range c.Labs {
		l.lintLesson(lab, documents[lab.Dir+"/README.md"])
		if err := l.lintCode(lab); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(l.problems, func(a, b Problem) int { return cmp.Compare(a.File, b.File) })
	return l.problems, nil
}

type linter struct {
	*Course
	regions  map[string]*region
	problems []Problem
}

func (l *linter) complain(file, format string, args ...any) {
	l.problems = append(l.problems, Problem{file, fmt.Sprintf(format, args...)})
}

// read returns the files that match the patterns, by their slash paths below the checkout.
func (c *Course) read(patterns ...string) (map[string]string, error) {
	files := map[string]string{}
	root := os.DirFS(c.Root)
	for _, pattern := range patterns {
		names, _ := fs.Glob(root, pattern) // the patterns are well formed
		for _, name := range names {
			data, err := fs.ReadFile(root, name)
			if err != nil {
				return nil, fmt.Errorf("read the course: %w", err)
			}
			files[name] = string(data)
		}
	}
	return files, nil
}

// A lesson quotes code of operator/ in a block right below <!-- snippet: ID -->, with the region's id.
var (
	snippet   = regexp.MustCompile("(?m)^([ \t]*)<!-- snippet: (\\S+) -->\n(?:[ \t]*```.*\n((?s:.*?))^[ \t]*```$)?")
	lineStart = regexp.MustCompile(`(?m)^(.)`)
)

// lintQuotes compares the code that a document quotes with operator/.
func (l *linter) lintQuotes(file, text string) {
	for _, m := range snippet.FindAllStringSubmatch(text, -1) {
		want, err := l.Snippet(m[2])
		if err != nil {
			l.complain(file, "%v", err)
		} else if want = lineStart.ReplaceAllString(want, m[1]+"$1"); want != m[3] {
			l.complain(file, "right below <!-- snippet: %s --> there is not the region's code, which is now:\n%s", m[2], want)
		}
	}
}

var (
	link     = regexp.MustCompile(`\]\(\s*<?([^)#\s>]+)[^)]*\)`)
	codeText = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$|`[^`\n]*`")
)

// lintLinks finds relative links to files that do not exist. Code has no links.
func (l *linter) lintLinks(file, text string) {
	for _, m := range link.FindAllStringSubmatch(codeText.ReplaceAllString(text, ""), -1) {
		if _, err := os.Stat(filepath.Join(l.Root, path.Dir(file), m[1])); err != nil && !strings.Contains(m[1], ":") { // a URL has a scheme
			l.complain(file, "the link leads nowhere: %s", m[1])
		}
	}
}

var (
	step      = regexp.MustCompile(`(?m)^## (\d+)\. `)
	checkItem = regexp.MustCompile("(?m)^- `([a-z0-9-]+)`:")
)

const contractWords = 150 // of a lesson, at most: the card is for authors and graders

// lintLesson looks at the parts of a lesson, and compares its list of checks with the manifest.
func (l *linter) lintLesson(lab *Lab, lesson string) {
	file := lab.Dir + "/README.md"
	_, contract, _ := strings.Cut(lesson, "\n## The contract\n")
	contract, _, _ = strings.Cut(contract, "\n## ")
	if n := len(strings.Fields(contract)); n > contractWords || !strings.Contains(contract, contractFile) {
		l.complain(file, "\"## The contract\" has to link %s, and to have at most %d words: it has %d", contractFile, contractWords, n)
	}
	for i, m := range step.FindAllStringSubmatch(lesson, -1) {
		if m[1] != fmt.Sprint(i+1) {
			l.complain(file, "step %s stands where step %d should", m[1], i+1)
		}
	}
	var ids []string
	for _, m := range checkItem.FindAllStringSubmatch(lesson, -1) {
		ids = append(ids, m[1])
	}
	l.compareIDs(lab, file, ids)
}

// compareIDs complains when a file has other checks than the lab's manifest.
func (l *linter) compareIDs(lab *Lab, file string, have []string) {
	var want []string
	for _, check := range lab.Checks {
		want = append(want, check.ID)
	}
	slices.Sort(want)
	if have = slices.Sorted(slices.Values(have)); !slices.Equal(have, want) {
		l.complain(file, "has the checks %v, and %s/%s has %v", have, lab.Dir, manifestFile, want)
	}
}

var (
	// cause is a cause in a lab's Go files: that of a new finding, or one that takes the place of another.
	cause = regexp.MustCompile(`(?:finding\.New|Because|\.WithCause)\("([a-z-]+)"`)
	// written is a check there.
	written = regexp.MustCompile(`env\.Check\("([^"]+)"`)
)

// lintCode compares the checks in a lab's Go files with the manifest, and finds causes there for which none of its checks has a hint. It
// also finds names of regions that do not exist, or are about a later lab.
func (l *linter) lintCode(lab *Lab) error {
	for _, check := range lab.Checks {
		for cause, id := range check.Regions {
			if r := l.regions[id]; r == nil || r.lab > lab.Number {
				l.complain(lab.Dir+"/"+manifestFile, "%s: regions.%s: %s/ has no region %q up to lab %d", check.ID, cause, SourceDir, id, lab.Number)
			}
		}
	}
	files, err := l.read(lab.Dir + "/*.go")
	var checks []string
	for file, text := range files {
		for _, m := range written.FindAllStringSubmatch(text, -1) {
			checks = append(checks, m[1])
		}
		for _, m := range cause.FindAllStringSubmatch(text, -1) {
			hinted := slices.ContainsFunc(lab.Checks, func(c Check) bool { return c.Hints[m[1]] != nil })
			if !hinted && !strings.HasSuffix(file, "_test.go") {
				l.complain(file, "no check of %s/%s has a hint for the cause %q", lab.Dir, manifestFile, m[1])
			}
		}
	}
	l.compareIDs(lab, lab.Dir+"/*.go", checks)
	return err
}
