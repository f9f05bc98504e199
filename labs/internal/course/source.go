package course

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
)

// source is the annotated operator, read once.
type source struct {
	files   Tree // operator/ without what course.yaml calls "never"
	regions map[string]*region
}

// readSource reads operator/. A mistake in a region is a [Problem].
func (c *Course) readSource() (*source, error) {
	files, err := ReadTree(filepath.Join(c.Root, SourceDir))
	if err != nil {
		return nil, fmt.Errorf("read the operator: %w", err)
	}
	maps.DeleteFunc(files, func(name string, _ File) bool { return matchesAny(c.config.Never, name) })
	s := &source{files: files, regions: map[string]*region{}}
	for _, name := range files.Paths() {
		a, err := parse(name, files[name].Data, len(c.Labs))
		if err != nil {
			return nil, err
		}
		for _, r := range a.regions {
			if other := s.regions[r.id]; other != nil {
				return nil, problemAt(name, r.line, "region %s: the id is taken by %s/%s:%d", r.id, SourceDir, other.in.name, other.line)
			}
			s.regions[r.id] = r
		}
	}
	return s, nil
}

// Source returns the annotated operator that a stage is rendered from, with those generated files of the stage that are there.
// Every call returns a tree of its own.
func (c *Course) Source(stage int) (Tree, error) {
	if stage < 0 || stage > len(c.Labs) {
		return nil, fmt.Errorf("there is no stage %d: the stages are 0 to %d", stage, len(c.Labs))
	}
	s, err := c.source()
	if err != nil {
		return nil, err
	}
	tree := maps.Clone(s.files)
	for _, g := range c.config.Generated {
		delete(tree, g.Path)
		if data, err := os.ReadFile(filepath.Join(c.Root, g.home(stage))); err == nil {
			tree[g.Path] = File{Data: data, Mode: 0o644}
		}
	}
	return tree, nil
}

// Render returns the tree of a stage: what a learner has after doing the labs 1 to stage. Stage 0 is the starter of lab 1,
// the starter of lab n is Render(n-1), and the last stage is the finished operator. Every call returns a tree of its own.
func (c *Course) Render(stage int) (Tree, error) {
	files, err := c.Source(stage)
	if err != nil {
		return nil, err
	}
	for _, g := range c.config.Generated {
		if _, ok := files[g.Path]; !ok && g.home(stage) != "" {
			return nil, fmt.Errorf("render stage %d: %s is missing: make generate makes it", stage, g.home(stage))
		}
	}
	return c.RenderSource(files, stage)
}

// RenderSource renders a stage of a changed operator. files are those that [Course.Source] returns for the stage, with the changes.
func (c *Course) RenderSource(files Tree, stage int) (Tree, error) {
	tree := Tree{}
	for _, name := range files.Paths() {
		file := files[name]
		if stage < c.config.from(name) {
			continue
		}
		if bytes.Contains(file.Data, []byte("lab:")) {
			a, err := parse(name, file.Data, len(c.Labs))
			if err != nil {
				return nil, err
			}
			if len(a.regions) > 0 {
				file.Data = []byte(a.render(stage, 1, len(a.lines), true))
			}
			if len(a.regions) > 0 && path.Ext(name) == ".go" {
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
	return dedent(r.in.render(r.lab, r.line, r.end, false)), nil
}
