package course

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// config is labs/course.yaml, which explains itself.
type config struct {
	Never     []string         `yaml:"never"` // no stage has these
	From      map[int][]string `yaml:"from"`  // the files that stages have from a lab on
	Generated []generated      `yaml:"generated"`
}

// generated is a file that controller-gen makes at the stages Made, in order. The stages between have the version before, which is
// stale, as a learner has it.
type generated struct {
	Path string `yaml:"path"`
	Made []int  `yaml:"made"`
}

// matches says whether a pattern of course.yaml matches a slash path.
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

// home is the slash path below the checkout of the version that a stage has, "" when the stage has none.
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
