package course

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// config is labs/course.yaml: what cannot be said inside the files of
// operator/ themselves.
//
// Paths are relative to operator/. "dir/" means everything below that folder,
// "**/name" every file whose name matches, anything else is matched as
// path.Match does.
type config struct {
	Schema int `yaml:"schema"`
	// Never lists what operator/ has and no stage of the course gets.
	Never []string `yaml:"never"`
	// From lists, by lab, the files that enter the course with it.
	From map[int][]string `yaml:"from"`
	// Generated lists the files that controller-gen makes.
	Generated []generated `yaml:"generated"`
}

// generated is a file that a generator makes. It goes stale where a lab
// changes its input without generating anew, as it does for a learner.
type generated struct {
	Path string `yaml:"path"`
	// Made are the stages at which the generator ran, in order. Stage k has
	// the file of the last of them that is not above k, and below the first
	// there is none. The last one's file is the finished operator's; earlier
	// ones are kept under StagesDir.
	Made []int `yaml:"made"`
}

func (c *config) validate(labs int) error {
	if c.Schema != manifestSchema {
		return fmt.Errorf("%s: schema: must be %d, is %d", configFile, manifestSchema, c.Schema)
	}
	if err := validatePatterns("never", c.Never); err != nil {
		return err
	}
	for _, lab := range slices.Sorted(maps.Keys(c.From)) {
		if lab < 1 || lab > labs {
			return fmt.Errorf("%s: from: there is no lab %d: the labs are 1 to %d", configFile, lab, labs)
		}
		if err := validatePatterns(fmt.Sprintf("from.%d", lab), c.From[lab]); err != nil {
			return err
		}
	}
	for i, g := range c.Generated {
		if err := g.validate(labs); err != nil {
			return fmt.Errorf("%s: generated[%d].%w", configFile, i, err)
		}
	}
	return nil
}

func validatePatterns(field string, patterns []string) error {
	for i, p := range patterns {
		_, err := path.Match(p, "")
		if p == "" || strings.HasPrefix(p, "/") || err != nil {
			return fmt.Errorf("%s: %s[%d]: %q is not a path below %s/", configFile, field, i, p, SourceDir)
		}
	}
	return nil
}

func (g generated) validate(labs int) error {
	if g.Path == "" || path.IsAbs(g.Path) || path.Clean(g.Path) != g.Path {
		return fmt.Errorf("path: %q is not a path below %s/", g.Path, SourceDir)
	}
	if len(g.Made) == 0 {
		return fmt.Errorf("made: is missing")
	}
	for i, stage := range g.Made {
		if stage < 0 || stage > labs {
			return fmt.Errorf("made[%d]: there is no stage %d: the stages are 0 to %d", i, stage, labs)
		}
		if i > 0 && stage <= g.Made[i-1] {
			return fmt.Errorf("made[%d]: the stages must rise", i)
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

// never says whether no stage has the file.
func (c *config) never(name string) bool {
	return slices.ContainsFunc(c.Never, func(p string) bool { return matches(p, name) })
}

// from is the first stage that has the file: 0 unless course.yaml says
// otherwise, and the highest lab if it says so more than once.
func (c *config) from(name string) int {
	first := 0
	for lab, patterns := range c.From {
		if lab > first && slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) }) {
			first = lab
		}
	}
	return first
}

// generatedFile returns the entry of a generated file.
func (c *config) generatedFile(name string) (generated, bool) {
	i := slices.IndexFunc(c.Generated, func(g generated) bool { return g.Path == name })
	if i < 0 {
		return generated{}, false
	}
	return c.Generated[i], true
}

// madeAt returns the stage whose generated file stage k has, and whether it
// has one at all.
func (g generated) madeAt(k int) (stage int, ok bool) {
	for _, m := range g.Made {
		if m <= k {
			stage, ok = m, true
		}
	}
	return stage, ok
}

// last is the stage from which on the finished operator's file is used.
func (g generated) last() int { return g.Made[len(g.Made)-1] }

// kept is where the file of an earlier stage is kept, a slash path below the
// checkout.
func (g generated) kept(stage int) string {
	return fmt.Sprintf("%s/%d/%s", StagesDir, stage, g.Path)
}
