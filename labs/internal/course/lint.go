package course

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Suite says which checks the compiled suite has: ids by lab.
type Suite map[int][]string

// Lint returns what is wrong with the course and can be seen without running anything: regions, course.yaml, starters,
// quoted code, links, promises, and checks that the manifests, the lessons and the suite do not agree on. A nil suite is not
// compared. (What is wrong with a manifest alone, Load says.)
func (c *Course) Lint(suite Suite) ([]Problem, error) {
	s, err := c.source()
	if problem, ok := errors.AsType[Problem](err); ok {
		return []Problem{problem}, nil // nothing else can be trusted
	}
	l := &linter{Course: c, source: s}
	if err == nil {
		l.documents, err = c.read("*.md", "labs/*.md", "labs/*/*.md", "docs/*.md")
	}
	if err != nil {
		return nil, err
	}
	l.lintConfig()
	for file, text := range l.documents {
		l.lintQuotes(file, text)
		l.lintLinks(file, text)
	}
	for _, lab := range c.Labs {
		if err := errors.Join(l.lintLesson(lab), l.lintHints(lab)); err != nil {
			return nil, err
		}
		if suite != nil {
			l.compareIDs(lab, lab.Dir+"/checks.go", "the suite", suite[lab.Number])
		}
	}
	slices.SortStableFunc(l.problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line) })
	return l.problems, nil
}

type linter struct {
	*Course
	source    *source
	documents map[string]string // the lessons and all other Markdown, by slash paths below the checkout
	problems  []Problem
}

func (l *linter) complain(file string, line int, format string, args ...any) {
	l.problems = append(l.problems, Problem{file, line, fmt.Sprintf(format, args...)})
}

// read returns the files that match the patterns, by their slash paths below the checkout.
func (c *Course) read(patterns ...string) (map[string]string, error) {
	files := map[string]string{}
	root := os.DirFS(c.Root)
	for _, pattern := range patterns {
		names, err := fs.Glob(root, pattern)
		if err != nil {
			return nil, err
		}
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

// lintConfig finds entries of course.yaml that mean nothing.
func (l *linter) lintConfig() {
	for lab, patterns := range l.config.From {
		for _, p := range patterns {
			if !slices.ContainsFunc(l.source.files.Paths(), func(name string) bool { return matches(p, name) }) {
				l.complain(configFile, 0, "from.%d: %s/ has nothing like %q", lab, SourceDir, p)
			}
		}
	}
}

// A lesson quotes code of operator/ by the region's id:
//
//	<!-- snippet: fetch -->
//	```go
//	(the region fetch)
//	```
var (
	snippetComment = regexp.MustCompile(`(?m)^([ \t]*)<!-- snippet: (\S+) -->\n`)
	snippet        = regexp.MustCompile(snippetComment.String() + "[ \t]*```.*\n((?s:.*?))^[ \t]*```$")
	lineStart      = regexp.MustCompile(`(?m)^(.)`)
)

// lintQuotes compares the code that a document quotes with operator/.
func (l *linter) lintQuotes(file, text string) {
	found := snippet.FindAllStringSubmatchIndex(text, -1)
	for _, m := range found {
		indent, id, have := text[m[2]:m[3]], text[m[4]:m[5]], text[m[6]:m[7]]
		want, err := l.Snippet(id)
		line := lineOf(text, m[0])
		if err != nil {
			l.complain(file, line, "%v", err)
		} else if want = lineStart.ReplaceAllString(want, indent+"$1"); want != have {
			l.complain(file, line, "differs from region %s, which is now:\n%s", id, want)
		}
	}
	if len(snippetComment.FindAllString(text, -1)) > len(found) {
		l.complain(file, 0, "a code block (```) stands right below each snippet comment")
	}
}

var (
	link     = regexp.MustCompile(`\]\(\s*<?([^)#\s>]+)[^)]*\)`)
	codeText = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$|`[^`\n]*`")
)

// lintLinks finds relative links to files that do not exist. Code has no links.
func (l *linter) lintLinks(file, text string) {
	text = codeText.ReplaceAllStringFunc(text, func(code string) string { return strings.Repeat("\n", strings.Count(code, "\n")) })
	for _, m := range link.FindAllStringSubmatchIndex(text, -1) {
		target := text[m[2]:m[3]]
		name := filepath.Join(l.Root, filepath.FromSlash(path.Dir(file)), target)
		if _, err := os.Stat(name); err != nil && !strings.Contains(target, ":") { // a URL has a scheme
			l.complain(file, lineOf(text, m[0]), "the link leads nowhere: %s", target)
		}
	}
}

var checkItem = regexp.MustCompile("(?m)^- `([a-z0-9-]+)`:")

// lintLesson compares a lesson with the contract card and with its manifest, and wants a starter that says where to begin.
func (l *linter) lintLesson(lab *Lab) error {
	file := lab.Dir + "/README.md"
	lesson := l.documents[file]
	_, promises, found := strings.Cut(l.documents[contractFile], fmt.Sprintf("\n## Lab %d:", lab.Number))
	_, promises, _ = strings.Cut(promises, "\n")
	promises, _, _ = strings.Cut(promises, "\n## ")
	if !found || !strings.Contains(lesson, strings.TrimSpace(promises)) {
		l.complain(file, 0, "lacks what %s says below \"## Lab %d:\", line by line", contractFile, lab.Number)
	}
	_, list, _ := strings.Cut(lesson, "\n## What is checked\n")
	list, _, _ = strings.Cut(list, "\n## ")
	var ids []string
	for _, m := range checkItem.FindAllStringSubmatch(list, -1) {
		ids = append(ids, m[1])
	}
	l.compareIDs(lab, file, "the lesson's list of what is checked", ids)

	starter, err := l.Render(lab.Number - 1)
	todo := fmt.Sprintf("TODO(lab %d): ", lab.Number)
	begins := func(name string) bool { return strings.Contains(string(starter[name].Data), todo) }
	if err == nil && !slices.ContainsFunc(starter.Paths(), begins) {
		l.complain(lab.Dir, 0, "the starter has no %q: no region of lab %d has a text", todo, lab.Number)
	}
	return err
}

// compareIDs complains about checks that one side lacks, or has twice.
func (l *linter) compareIDs(lab *Lab, file, side string, ids []string) {
	differ := map[string]int{}
	for _, check := range lab.Checks {
		differ[check.ID]++
	}
	for _, id := range ids {
		differ[id]--
	}
	maps.DeleteFunc(differ, func(_ string, n int) bool { return n == 0 })
	if len(differ) > 0 {
		l.complain(file, 0, "%s and %s/%s differ in the checks %v", side, lab.Dir, manifestFile, slices.Sorted(maps.Keys(differ)))
	}
}

// cause is a cause in a lab's Go files: that of a new finding, or one that takes the place of another.
var cause = regexp.MustCompile(`(?:finding\.New|Because|\.WithCause)\("([a-z-]+)"`)

// lintHints finds causes in the Go files of a lab for which none of its checks has a hint, and regions that hints name and that
// are not there, or tell of a later lab.
func (l *linter) lintHints(lab *Lab) error {
	hinted := map[string]bool{}
	for _, check := range lab.Checks {
		for cause := range check.Hints {
			hinted[cause] = true
		}
		for cause, id := range check.Regions {
			if r := l.source.regions[id]; r == nil || r.lab > lab.Number {
				l.complain(lab.Dir+"/"+manifestFile, 0, "%s: regions.%s: %s/ has no region %q up to lab %d", check.ID, cause, SourceDir, id, lab.Number)
			}
		}
	}
	files, err := l.read(lab.Dir + "/*.go")
	for file, text := range files {
		for _, m := range cause.FindAllStringSubmatchIndex(text, -1) {
			if name := text[m[2]:m[3]]; !hinted[name] && !strings.HasSuffix(file, "_test.go") {
				l.complain(file, lineOf(text, m[0]), "no check of %s/%s has a hint for the cause %q", lab.Dir, manifestFile, name)
			}
		}
	}
	return err
}

// lineOf is the number of the line that has the byte at the offset.
func lineOf(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }
