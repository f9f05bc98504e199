package course

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
)

// source is the annotated operator, read and parsed once.
type source struct {
	files     Tree                  // operator/ without what course.yaml calls "never"
	annotated map[string]*annotated // only files with regions
	regions   map[string]*region
	versions  Tree // of generated files, by their slash paths below the checkout
}

func (c *Course) readSource() (*source, error) {
	files, err := ReadTree(filepath.Join(c.Root, SourceDir))
	if err != nil {
		return nil, fmt.Errorf("read the operator: %w", err)
	}
	earlier, err := ReadTree(filepath.Join(c.Root, filepath.FromSlash(StagesDir)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the operator: %w", err)
	}
	versions := Tree{}
	for name, file := range earlier {
		versions[StagesDir+"/"+name] = file
	}
	for _, g := range c.config.Generated {
		if file, ok := files[g.Path]; ok {
			versions[SourceDir+"/"+g.Path] = file
		}
	}
	return c.parse(files, versions)
}

// parse finds the regions of all files. A mistake in them is an error, a [Problem].
func (c *Course) parse(files, versions Tree) (*source, error) {
	s := &source{files: Tree{}, annotated: map[string]*annotated{}, regions: map[string]*region{}, versions: versions}
	for _, name := range files.Paths() {
		if matchesAny(c.config.Never, name) {
			continue
		}
		s.files[name] = files[name]
		a, err := parse(name, files[name].Data, len(c.Labs))
		if err != nil {
			return nil, err
		}
		for _, r := range a.regions {
			if other := s.regions[r.id]; other != nil {
				return nil, Problem{SourceDir + "/" + name, r.line,
					fmt.Sprintf("region %s: the id is taken by %s/%s:%d", r.id, SourceDir, other.file, other.line)}
			}
			s.regions[r.id], s.annotated[name] = r, a
		}
	}
	return s, nil
}

// Source returns the annotated operator that a stage is rendered from, with the generated files of that stage. Every call
// returns a tree of its own.
func (c *Course) Source(stage int) (Tree, error) {
	s, err := c.source()
	if err != nil {
		return nil, err
	}
	tree := maps.Clone(s.files)
	for _, g := range c.config.Generated {
		if file, ok := s.versions[g.home(stage)]; ok {
			tree[g.Path] = file
		}
	}
	return tree, nil
}

// WithSource returns the same course with another annotated operator, made of the [Course.Source] of a stage, in the place of
// operator/, which stays as it is.
func (c *Course) WithSource(files Tree, stage int) (*Course, error) {
	old, err := c.source()
	if err != nil {
		return nil, err
	}
	other, config, versions := *c, *c.config, maps.Clone(old.versions)
	config.Generated = slices.DeleteFunc(slices.Clone(config.Generated), func(g generated) bool {
		file, ok := files[g.Path]
		if ok && g.home(stage) != "" {
			versions[g.home(stage)] = file
		}
		return !ok // nobody generates a file that was deleted
	})
	other.config = &config
	s, err := other.parse(files, versions)
	if err != nil {
		return nil, err
	}
	other.source = func() (*source, error) { return s, nil }
	return &other, nil
}

// Render returns the tree of a stage: what a learner has after doing the labs 1 to stage. Stage 0 is the starter of lab 1,
// the starter of lab n is Render(n-1), and the last stage is the finished operator. Every call returns a tree of its own.
func (c *Course) Render(stage int) (Tree, error) {
	tree, err := c.renderWritten(stage)
	if err != nil {
		return nil, err
	}
	s, err := c.source()
	for _, g := range c.config.Generated {
		home := g.home(stage)
		file, ok := s.versions[home]
		switch {
		case ok:
			tree[g.Path] = file
		case home != "":
			return nil, fmt.Errorf("render stage %d: %s is missing: bin/labdev verify --fix makes it", stage, home)
		}
	}
	return tree, err
}

// renderWritten is Render without generated files.
func (c *Course) renderWritten(stage int) (Tree, error) {
	if stage < 0 || stage > len(c.Labs) {
		return nil, fmt.Errorf("there is no stage %d: the stages are 0 to %d", stage, len(c.Labs))
	}
	s, err := c.source()
	if err != nil {
		return nil, err
	}
	tree := Tree{}
	for name, file := range s.files {
		if c.config.isGenerated(name) || stage < c.config.from(name) {
			continue
		}
		if a := s.annotated[name]; a != nil {
			file.Data = []byte(a.render(stage, 1, len(a.lines), true))
			if path.Ext(name) == ".go" {
				if file.Data, err = tidyGo(name, file.Data); err != nil {
					return nil, fmt.Errorf("render stage %d: %s/%s: %w", stage, SourceDir, name, err)
				}
			}
		}
		tree[name] = file
	}
	return tree, nil
}

// Snippet returns the text of a region for a lesson: as it stands at the region's own lab, without marker lines, TODOs and
// common indentation, ending with a line end.
func (c *Course) Snippet(id string) (string, error) {
	s, err := c.source()
	if err != nil {
		return "", err
	}
	r := s.regions[id]
	if r == nil {
		return "", fmt.Errorf("there is no region %q in %s/", id, SourceDir)
	}
	return dedent(s.annotated[r.file].render(r.lab, r.line, r.end, false)), nil
}
