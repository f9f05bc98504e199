package course

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
)

// source is the annotated operator, read and parsed once.
type source struct {
	files     Tree                  // operator/ without what course.yaml calls "never"
	annotated map[string]*annotated // only files with regions
	regions   map[string]*Region
	kept      Tree // earlier generated files, by their paths below StagesDir
}

func (c *Course) readSource() (*source, error) {
	files, err := ReadTree(filepath.Join(c.Root, SourceDir))
	if err != nil {
		return nil, fmt.Errorf("read the operator: %w", err)
	}
	kept, err := ReadTree(filepath.Join(c.Root, filepath.FromSlash(StagesDir)))
	if errors.Is(err, fs.ErrNotExist) {
		kept, err = Tree{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the operator: %w", err)
	}
	return c.parse(files, kept)
}

// parse finds the regions of all files. A mistake in them is an error, a [Problem].
func (c *Course) parse(files, kept Tree) (*source, error) {
	s := &source{files: Tree{}, annotated: map[string]*annotated{}, regions: map[string]*Region{}, kept: kept}
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
			if other := s.regions[r.ID]; other != nil {
				return nil, Problem{SourceDir + "/" + name, r.Line,
					fmt.Sprintf("region %s: the id is taken by %s/%s:%d", r.ID, SourceDir, other.File, other.Line)}
			}
			s.regions[r.ID], s.annotated[name] = r, a
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
		if kept, ok := s.kept[g.kept(g.madeAt(stage))]; ok {
			tree[g.Path] = kept
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
	s, err := c.parse(files, maps.Clone(old.kept))
	if err != nil {
		return nil, err
	}
	for _, g := range c.config.Generated {
		if made := g.madeAt(stage); made >= 0 && made < g.last() {
			s.kept[g.kept(made)] = files[g.Path] // a File without a mode if files has none, which Render leaves out
		}
	}
	other := *c
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
		made := g.madeAt(stage)
		file, ok := s.files[g.Path]
		if made < g.last() {
			file, ok = s.kept[g.kept(made)]
		}
		if file.Mode != 0 {
			tree[g.Path] = file
		} else if made >= 0 && !ok {
			return nil, fmt.Errorf("render stage %d: there is no generated %s of stage %d: bin/labdev verify --fix makes it", stage, g.Path, made)
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
	return dedent(s.annotated[r.File].render(r.Lab, r.Line, r.end, false)), nil
}
