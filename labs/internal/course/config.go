package course

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// config is labs/course.yaml: what cannot be said inside the files of operator/ themselves.
//
// Paths are relative to operator/. "dir/" means everything below that folder, "**/name" every file whose name matches,
// anything else is matched as path.Match does.
type config struct {
	Schema int `yaml:"schema"`
	// Never lists what operator/ has and no stage of the course gets.
	Never []string `yaml:"never"`
	// From lists, by lab, the files that enter the course with it.
	From map[int][]string `yaml:"from"`
	// Generated lists the files that controller-gen makes.
	Generated []generated `yaml:"generated"`
}

// generated is a file that a generator makes. It goes stale where a lab changes its input without generating anew, as it
// does for a learner.
type generated struct {
	Path string `yaml:"path"`
	// Made are the stages at which the generator ran, in order. Stage k has the file of the last of them that is not above
	// k, and below the first there is none. The last one's file is the finished operator's; earlier ones are kept under
	// StagesDir.
	Made []int `yaml:"made"`
}

func (c *config) validate(labs int) error {
	if c.Schema != 1 {
		return fmt.Errorf("schema: must be 1, is %d", c.Schema)
	}
	for lab := range c.From {
		if lab < 1 || lab > labs {
			return fmt.Errorf("from: there is no lab %d: the labs are 1 to %d", lab, labs)
		}
	}
	for i, g := range c.Generated {
		if len(g.Made) == 0 || g.Made[0] < 0 || g.last() > labs || !slices.IsSorted(g.Made) {
			return fmt.Errorf("generated[%d].made: must be stages from 0 to %d, in order", i, labs)
		}
	}
	return nil
}

// matches says whether a slash path is meant by a pattern of course.yaml.
func matches(pattern, name string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/"); ok {
		return strings.HasPrefix(name, dir+"/")
	}
	if base, ok := strings.CutPrefix(pattern, "**/"); ok {
		name, pattern = path.Base(name), base
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// from is the first stage that has the file: 0 unless course.yaml says otherwise, and the highest lab if it says so more
// than once.
func (c *config) from(name string) (first int) {
	for lab, patterns := range c.From {
		if lab > first && matchesAny(patterns, name) {
			first = lab
		}
	}
	return first
}

// isGenerated says whether controller-gen makes the file.
func (c *config) isGenerated(name string) bool {
	return slices.ContainsFunc(c.Generated, func(g generated) bool { return g.Path == name })
}

// madeAt returns the stage whose generated file stage k has, -1 when it has none.
func (g generated) madeAt(k int) int {
	stage := -1
	for _, m := range g.Made {
		if m <= k {
			stage = m
		}
	}
	return stage
}

// last is the stage from which on the finished operator's file is used.
func (g generated) last() int { return g.Made[len(g.Made)-1] }

// kept is where the file of an earlier stage is kept, a slash path below StagesDir.
func (g generated) kept(stage int) string { return fmt.Sprintf("%d/%s", stage, g.Path) }
