package course

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// config is labs/course.yaml, which explains itself.
type config struct {
	Schema    int              `yaml:"schema"`
	Never     []string         `yaml:"never"` // no stage has these
	From      map[int][]string `yaml:"from"`  // the files that enter with a lab
	Generated []generated      `yaml:"generated"`
}

// generated is a file that controller-gen makes at the stages Made, in order. In between it goes stale, as it does for a learner.
type generated struct {
	Path string `yaml:"path"`
	Made []int  `yaml:"made"`
}

func (c *config) validate(labs int) error {
	if c.Schema != 1 {
		return fmt.Errorf("schema: must be 1, is %d", c.Schema)
	}
	for i, g := range c.Generated {
		if len(g.Made) == 0 || !slices.IsSorted(g.Made) || g.Made[0] < 0 || slices.Max(g.Made) > labs {
			return fmt.Errorf("generated[%d].made: must be stages from 0 to %d, in order", i, labs)
		}
	}
	return nil
}

// matches says whether a slash path is meant by a pattern of course.yaml.
func matches(pattern, name string) bool {
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(name, pattern)
	}
	whole, _ := path.Match(pattern, name)
	base, _ := path.Match(pattern, path.Base(name))
	return whole || base
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// from is the first stage that has the file.
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

// home is where the version that a stage has is kept, a slash path below the checkout; "" when the stage has none.
func (g generated) home(stage int) (file string) {
	for i, made := range g.Made {
		switch {
		case made > stage:
		case i == len(g.Made)-1:
			file = SourceDir + "/" + g.Path
		default:
			file = fmt.Sprintf("%s/%d/%s", StagesDir, made, g.Path)
		}
	}
	return file
}
