package course

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Suite says which checks the compiled suite has: ids by lab.
type Suite map[int][]string

// Lint returns what is wrong with the course and can be seen without running
// anything: regions, course.yaml, starters, quotes, links, and checks that the
// manifests, the lessons and the suite do not agree on. A nil suite is not
// compared. (What is wrong with a manifest alone, Load says.)
func (c *Course) Lint(suite Suite) ([]Problem, error) {
	problems, err := c.lintSource()
	if err != nil || len(problems) > 0 {
		return problems, err // nothing else can be trusted
	}
	documents, err := c.documents()
	if err != nil {
		return nil, err
	}
	for _, file := range documents {
		text, err := os.ReadFile(filepath.Join(c.Root, filepath.FromSlash(file)))
		if err != nil {
			return nil, fmt.Errorf("lint: %w", err)
		}
		_, stale := c.requote(file, string(text))
		problems = append(problems, stale...)
		problems = append(problems, c.deadLinks(file, string(text))...)
	}
	problems = append(problems, c.lintLessons()...)
	problems = append(problems, c.lintStarters()...)
	problems = append(problems, c.lintHintRegions()...)
	causes, err := c.lintCauses()
	if err != nil {
		return nil, err
	}
	problems = append(problems, causes...)
	if suite != nil {
		problems = append(problems, c.lintSuite(suite)...)
	}
	return problems, nil
}

// lintSource looks at the annotated operator.
func (c *Course) lintSource() ([]Problem, error) {
	s, problems, err := parseSource(c)
	if err != nil {
		return nil, err
	}
	for _, name := range s.files.Paths() {
		if path.Ext(name) != ".go" {
			continue
		}
		file, data := SourceDir+"/"+name, s.files[name].Data
		if formatted, err := format.Source(data); err != nil {
			problems = append(problems, Problem{file, 0, err.Error()})
			continue
		} else if !bytes.Equal(formatted, data) {
			problems = append(problems, Problem{file, 0, "is not gofmt'ed"})
		}
		if p := s.parsed[name]; p != nil {
			problems = append(problems, lintPlacement(file, data, p)...)
		}
	}
	return append(problems, c.lintConfig(s)...), nil
}

// lintConfig finds entries of course.yaml that mean nothing (any more).
func (c *Course) lintConfig(s *source) (problems []Problem) {
	names := s.files.Paths()
	complain := func(format string, args ...any) {
		problems = append(problems, Problem{configFile, 0, fmt.Sprintf(format, args...)})
	}
	for lab, patterns := range c.config.From {
		for i, p := range patterns {
			if !slices.ContainsFunc(names, func(name string) bool { return matches(p, name) }) {
				complain("from.%d[%d]: %s/ has nothing like %q", lab, i, SourceDir, p)
			}
		}
	}
	for i, g := range c.config.Generated {
		if _, ok := s.files[g.Path]; !ok {
			complain("generated[%d].path: %s/ has no %q: bin/lab verify --fix generates it", i, SourceDir, g.Path)
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Text, b.Text) })
	return problems
}

var (
	link        = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?[^)]*\)`)
	fencedBlock = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	inlineCode  = regexp.MustCompile("`[^`\n]*`")
)

// blankCode replaces code by spaces, so that lines keep their numbers.
func blankCode(text string) string {
	blank := func(code string) string {
		return regexp.MustCompile(`[^\n]`).ReplaceAllString(code, " ")
	}
	return inlineCode.ReplaceAllStringFunc(fencedBlock.ReplaceAllStringFunc(text, blank), blank)
}

// deadLinks finds relative links to files that do not exist.
func (c *Course) deadLinks(file, text string) (problems []Problem) {
	for i, line := range strings.Split(blankCode(text), "\n") {
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			target, err := url.Parse(m[1])
			if err != nil || target.Scheme != "" || target.Host != "" || target.Path == "" {
				continue
			}
			name := path.Join(path.Dir(file), target.Path)
			if strings.HasPrefix(target.Path, "/") {
				name = target.Path[1:]
			}
			if _, err := os.Stat(filepath.Join(c.Root, filepath.FromSlash(name))); err != nil {
				problems = append(problems, Problem{file, i + 1, "the link leads nowhere: " + m[1]})
			}
		}
	}
	return problems
}

// lintLessons compares the checks of each lesson with those of its manifest.
func (c *Course) lintLessons() (problems []Problem) {
	for _, lab := range c.Labs {
		file := lab.Dir + "/README.md"
		text, err := os.ReadFile(filepath.Join(c.Root, filepath.FromSlash(file)))
		if err != nil {
			problems = append(problems, Problem{file, 0, "the lesson is missing"})
			continue
		}
		problems = append(problems, compareIDs(lab, file, "the lesson's list of what is checked", lessonChecks(string(text)))...)
	}
	return problems
}

// lintStarters finds labs whose starter does not say where to begin.
func (c *Course) lintStarters() (problems []Problem) {
	for _, lab := range c.Labs {
		starter, err := c.Render(lab.Number - 1)
		if err != nil {
			return append(problems, Problem{SourceDir, 0, err.Error()})
		}
		todo := fmt.Appendf(nil, "TODO(lab %d): ", lab.Number)
		if !slices.ContainsFunc(slices.Collect(maps.Values(starter)), func(f File) bool { return bytes.Contains(f.Data, todo) }) {
			problems = append(problems, Problem{lab.Dir, 0, fmt.Sprintf("the starter has no %q: no region of lab %d has a text", todo, lab.Number)})
		}
	}
	return problems
}

// lintHintRegions finds regions that hints name and that are not there, or tell of a later lab.
func (c *Course) lintHintRegions() (problems []Problem) {
	s, err := c.source()
	if err != nil {
		return []Problem{{SourceDir, 0, err.Error()}}
	}
	for _, lab := range c.Labs {
		for _, check := range lab.Checks {
			for _, cause := range slices.Sorted(maps.Keys(check.Regions)) {
				id := check.Regions[cause]
				if r := s.regions[id]; r == nil || r.Lab > lab.Number {
					problems = append(problems, Problem{lab.Dir + "/" + manifestFile, 0,
						fmt.Sprintf("%s: regions.%s: %s/ has no region %q up to lab %d", check.ID, cause, SourceDir, id, lab.Number)})
				}
			}
		}
	}
	return problems
}

// cause is a cause in a lab's Go files: that of a new finding, or one that takes the place of another.
var cause = regexp.MustCompile(`(?:finding\.New|\.Because|\.WithCause)\("([a-z-]+)"`)

// lintCauses finds causes in the Go files of a lab for which none of its checks has a hint: a learner would get that of
// "other".
func (c *Course) lintCauses() (problems []Problem, _ error) {
	for _, lab := range c.Labs {
		hinted := map[string]bool{}
		for _, check := range lab.Checks {
			for cause := range check.Hints {
				hinted[cause] = true
			}
		}
		files, err := filepath.Glob(filepath.Join(c.Root, filepath.FromSlash(lab.Dir), "*.go"))
		if err != nil {
			return nil, fmt.Errorf("lint: %w", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("lint: %w", err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				for _, m := range cause.FindAllStringSubmatch(line, -1) {
					if !hinted[m[1]] && !strings.HasSuffix(file, "_test.go") {
						problems = append(problems, Problem{lab.Dir + "/" + filepath.Base(file), i + 1,
							fmt.Sprintf("no check of %s/%s has a hint for the cause %q", lab.Dir, manifestFile, m[1])})
					}
				}
			}
		}
	}
	return problems, nil
}

func (c *Course) lintSuite(suite Suite) (problems []Problem) {
	for _, lab := range c.Labs {
		problems = append(problems, compareIDs(lab, lab.Dir+"/checks.go", "the suite", suite[lab.Number])...)
	}
	for n := range suite {
		if _, err := c.Lab(n); err != nil {
			problems = append(problems, Problem{"labs/suite_test.go", 0, err.Error()})
		}
	}
	return problems
}

// compareIDs complains about ids that only one side has.
func compareIDs(lab *Lab, file, side string, ids []string) (problems []Problem) {
	for _, check := range lab.Checks {
		if !slices.Contains(ids, check.ID) {
			problems = append(problems, Problem{file, 0,
				fmt.Sprintf("%s does not have the check %s of %s/%s", side, check.ID, lab.Dir, manifestFile)})
		}
	}
	for i, id := range ids {
		switch {
		case slices.Contains(ids[:i], id):
			problems = append(problems, Problem{file, 0, fmt.Sprintf("%s has the check %s twice", side, id)})
		case !slices.ContainsFunc(lab.Checks, func(c Check) bool { return c.ID == id }):
			problems = append(problems, Problem{file, 0,
				fmt.Sprintf("%s has a check %s that %s/%s does not have", side, id, lab.Dir, manifestFile)})
		}
	}
	return problems
}
