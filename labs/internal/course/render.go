package course

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// source is the annotated operator, read and parsed once.
type source struct {
	files   Tree
	parsed  map[string]*parsed // only of files with regions
	regions map[string]*Region
	kept    map[string][]byte // earlier generated files by their path in the checkout
}

// readSource reads operator/ without what course.yaml calls "never". A mistake
// in a region is an error.
func readSource(c *Course) (*source, error) { return first(parseSource(c)) }

// first makes an error of the first problem.
func first(s *source, problems []Problem, err error) (*source, error) {
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	return s, err
}

// parseSource is readSource for those who want to know all mistakes.
func parseSource(c *Course) (*source, []Problem, error) {
	all, err := ReadTree(filepath.Join(c.Root, SourceDir))
	if err != nil {
		return nil, nil, fmt.Errorf("read the operator: %w", err)
	}
	return c.parseFiles(all)
}

// parseFiles is parseSource of files that stand for operator/.
func (c *Course) parseFiles(all Tree) (*source, []Problem, error) {
	s := &source{files: Tree{}, parsed: map[string]*parsed{}, regions: map[string]*Region{}, kept: map[string][]byte{}}
	for name, file := range all {
		if !c.config.never(name) {
			s.files[name] = file
		}
	}
	problems := s.parse(len(c.Labs))
	return s, problems, s.readKept(c)
}

// parse finds the regions of all files and returns every mistake in them.
func (s *source) parse(labs int) (problems []Problem) {
	for _, name := range s.files.Paths() {
		p := parse(name, s.files[name].Data, labs)
		problems = append(problems, p.problems...)
		for _, r := range p.regions {
			s.parsed[name] = p
			if first := s.regions[r.ID]; first != nil {
				problems = append(problems, Problem{SourceDir + "/" + name, r.Line,
					fmt.Sprintf("region %s: the id is taken by %s/%s:%d", r.ID, SourceDir, first.File, first.Line)})
				continue
			}
			s.regions[r.ID] = r
		}
	}
	return problems
}

// readKept reads the earlier versions of generated files. One that is missing
// is only missed by the stage that has it, so that it can be generated.
func (s *source) readKept(c *Course) error {
	for _, g := range c.config.Generated {
		for _, stage := range g.Made[:len(g.Made)-1] {
			name := g.kept(stage)
			data, err := os.ReadFile(filepath.Join(c.Root, filepath.FromSlash(name)))
			if errors.Is(err, os.ErrNotExist) {
				continue
			} else if err != nil {
				return fmt.Errorf("read the operator: %w", err)
			}
			s.kept[name] = data
		}
	}
	return nil
}

// Source returns the annotated operator that a stage is rendered from, with the
// generated files of that stage. Every call returns a tree of its own.
func (c *Course) Source(stage int) (Tree, error) {
	s, err := c.source()
	if err != nil {
		return nil, err
	}
	tree := maps.Clone(s.files)
	for name, kept := range c.keptAt(stage) {
		if data, ok := s.kept[kept]; ok {
			tree[name] = File{Data: data, Mode: tree[name].Mode}
		}
	}
	return tree, nil
}

// keptAt are the generated files of which a stage has an earlier version: their
// paths, and where these versions are kept.
func (c *Course) keptAt(stage int) map[string]string {
	all := map[string]string{}
	for _, g := range c.config.Generated {
		if made, ok := g.madeAt(stage); ok && made != g.last() {
			all[g.Path] = g.kept(made)
		}
	}
	return all
}

// WithSource returns the same course with another annotated operator, made of
// the [Course.Source] of a stage, in the place of operator/, which stays as it is.
func (c *Course) WithSource(files Tree, stage int) (*Course, error) {
	s, err := first(c.parseFiles(files))
	if err != nil {
		return nil, err
	}
	for name, kept := range c.keptAt(stage) {
		s.kept[kept] = files[name].Data
	}
	other := *c
	other.source = func() (*source, error) { return s, nil }
	return &other, nil
}

// Render returns the tree of a stage: what a learner has after doing the labs
// 1 to stage. Stage 0 is the starter of lab 1, the starter of lab n is Render(n-1),
// and the last stage is the finished operator. Every call returns a tree of its own.
func (c *Course) Render(stage int) (Tree, error) { return c.render(stage, true) }

// render is Render, with the generated files or without them.
func (c *Course) render(stage int, withGenerated bool) (Tree, error) {
	if stage < 0 || stage > len(c.Labs) {
		return nil, fmt.Errorf("there is no stage %d: the stages are 0 to %d", stage, len(c.Labs))
	}
	s, err := c.source()
	if err != nil {
		return nil, err
	}
	tree := Tree{}
	for name, file := range s.files {
		if _, ok := c.config.generatedFile(name); ok && !withGenerated {
			continue
		}
		file, ok, err := c.renderFile(s, name, file, stage)
		if err != nil {
			return nil, fmt.Errorf("render stage %d: %s/%s: %w", stage, SourceDir, name, err)
		}
		if ok {
			tree[name] = file
		}
	}
	return tree, nil
}

// renderFile returns the file as the stage has it; ok is false when it has it
// not.
func (c *Course) renderFile(s *source, name string, file File, stage int) (_ File, ok bool, err error) {
	if stage < c.config.from(name) {
		return File{}, false, nil
	}
	if g, ok := c.config.generatedFile(name); ok {
		return s.generated(g, file, stage)
	}
	p := s.parsed[name]
	if p == nil {
		return file, true, nil
	}
	file.Data = []byte(p.render(stage))
	if filepath.Ext(name) == ".go" {
		file.Data, err = tidyGo(name, file.Data)
	}
	return file, true, err
}

func (s *source) generated(g generated, finished File, stage int) (File, bool, error) {
	made, ok := g.madeAt(stage)
	if !ok || made == g.last() {
		return finished, ok, nil
	}
	data, found := s.kept[g.kept(made)]
	if !found {
		return File{}, false, fmt.Errorf("%s is missing: bin/lab verify --fix generates it", g.kept(made))
	}
	finished.Data = data
	return finished, true, nil
}

// render returns the text of the file at a stage.
func (p *parsed) render(stage int) string {
	w := &writer{comment: p.comment, stage: stage, todo: true, braces: filepath.Ext(p.name) == ".go"}
	w.nodes(p.top)
	return w.String()
}

// render returns the text of the region alone, at a stage, with or without TODOs.
func (r *Region) render(stage int, todo bool) string {
	w := &writer{comment: commentOf(r.File), stage: stage, todo: todo, braces: filepath.Ext(r.File) == ".go"}
	w.nodes([]node{{region: r}})
	return w.String()
}

// writer puts a rendering together.
type writer struct {
	comment comment
	stage   int
	todo    bool // leave TODOs
	braces  bool // no empty line after an opening or before a closing brace
	lines   []renderedLine
}

// renderedLine is a line of text, or the place where something was taken out.
type renderedLine struct {
	text string
	gone bool
}

func (l renderedLine) empty() bool { return l.gone || strings.TrimSpace(l.text) == "" }

func (w *writer) line(text string) { w.lines = append(w.lines, renderedLine{text: text}) }
func (w *writer) gone()            { w.lines = append(w.lines, renderedLine{gone: true}) }

func (w *writer) nodes(nodes []node) {
	for _, n := range nodes {
		if n.region == nil {
			w.line(n.text)
			continue
		}
		w.gone()
		w.region(n.region)
		w.gone()
	}
}

func (w *writer) region(r *Region) {
	if r.Lab <= w.stage {
		w.nodes(r.body)
		return
	}
	if w.todo && r.Text != "" {
		w.line(w.comment.line(r.indent, fmt.Sprintf("TODO(lab %d): %s", r.Lab, r.Text)))
		if r.airy && len(r.before) > 0 {
			w.line("") // or it would become part of the next declaration's comment
			w.gone()
		}
	}
	for _, line := range r.before {
		w.line(line)
	}
}

// String joins the lines. Where something was taken out, at most one empty
// line stays; none at either end of the file or inside of a brace.
func (w *writer) String() string {
	var b strings.Builder
	last := "" // line with text; "" at the beginning
	for i := 0; i < len(w.lines); {
		if !w.lines[i].empty() {
			last = w.lines[i].text
			b.WriteString(last + "\n")
			i++
			continue
		}
		end := i
		for end < len(w.lines) && w.lines[end].empty() {
			end++
		}
		next := ""
		if end < len(w.lines) {
			next = w.lines[end].text
		}
		b.WriteString(strings.Repeat("\n", w.blanks(w.lines[i:end], last, next)))
		i = end
	}
	return b.String()
}

// blanks says how many empty lines a gap between two lines of text keeps.
func (w *writer) blanks(gap []renderedLine, last, next string) int {
	touched, empty := false, 0
	for _, l := range gap {
		if l.gone {
			touched = true
		} else {
			empty++
		}
	}
	switch {
	case !touched:
		return empty
	case last == "" || next == "" || w.braces && (opens(last) || closes(next)):
		return 0
	default:
		return min(empty, 1)
	}
}

func opens(line string) bool {
	return strings.HasSuffix(line, "{") || strings.HasSuffix(line, "(")
}

func closes(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "}") || strings.HasPrefix(line, ")")
}
