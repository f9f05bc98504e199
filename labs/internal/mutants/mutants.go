// Package mutants knows the course's wrong answers: patches against the annotated operator, each with
// the check that has to catch it and the cause whose hint has to be shown. It loads them, lints them,
// and judges them on real clusters: checks that let one pass, or that explain it by something else,
// teach nobody.
package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/example/operator-lab/labs/internal/course"
)

// Dir is the folder of a lab's wrong answers, inside the lab's own.
const Dir = "mutants"

const extension = ".patch"

// Mutant is one wrong answer, as labs/NN-name/mutants/<id>.patch describes it: a YAML header, a line
// "---", and a diff of operator/ in the style of git.
type Mutant struct {
	// Lab is the lab that it answers, ID its name, unique in the lab.
	Lab int
	ID  string
	// File is a slash path below the checkout.
	File string
	// Misconception is what somebody believes who answers like this, in one sentence.
	Misconception string
	// Caught is the check that has to be the first to fail, and Cause the cause it has to give.
	Caught, Cause string
	// Also are checks that may fail besides. All others must not.
	Also []string
	// Regenerate says that the learner ran the generators after their mistake.
	Regenerate bool
	// Common marks one of the two mistakes of a lab that are seen most; the instructor's guide tells of them.
	Common bool
	// Stage is the stage of the course that is patched: the lab's own, unless the file says otherwise.
	Stage int

	patch patch
}

// String is the name of a mutant among those of all labs.
func (m *Mutant) String() string { return fmt.Sprintf("%d/%s", m.Lab, m.ID) }

// header is the YAML at the top of a file.
type header struct {
	Misconception string   `yaml:"misconception"`
	Caught        string   `yaml:"caught"`
	Cause         string   `yaml:"cause"`
	Also          []string `yaml:"also"`
	Regenerate    bool     `yaml:"regenerate"`
	Common        bool     `yaml:"common"`
	Stage         *int     `yaml:"stage"`
}

// Load returns the wrong answers of all labs, sorted by lab and id. Its errors name file and field.
func Load(c *course.Course) ([]*Mutant, error) {
	all, problems, err := load(c)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	return all, err
}

// load is Load for those who want to know all mistakes.
func load(c *course.Course) (all []*Mutant, problems []course.Problem, err error) {
	for _, lab := range c.Labs {
		names, err := filepath.Glob(filepath.Join(c.Root, filepath.FromSlash(lab.Dir), Dir, "*"+extension))
		if err != nil {
			return nil, nil, fmt.Errorf("find wrong answers: %w", err)
		}
		slices.Sort(names)
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				return nil, nil, fmt.Errorf("read wrong answer: %w", err)
			}
			file := path.Join(lab.Dir, Dir, filepath.Base(name))
			m, err := Parse(lab.Number, file, data)
			if err != nil {
				problems = append(problems, course.Problem{File: file, Text: err.Error()})
				continue
			}
			all = append(all, m)
		}
	}
	return all, problems, nil
}

var identifier = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Parse reads one file of wrong answers to a lab. Errors do not repeat the file's name.
func Parse(lab int, file string, data []byte) (*Mutant, error) {
	m := &Mutant{Lab: lab, ID: strings.TrimSuffix(path.Base(file), extension), File: file, Stage: lab}
	if !identifier.MatchString(m.ID) {
		return nil, fmt.Errorf("the name %q is not an id: lower case words joined by hyphens", m.ID)
	}
	top, diff, ok := cut(data)
	if !ok {
		return nil, errors.New(`there is no line "---" between the description and the diff`)
	}
	if err := m.describe(top); err != nil {
		return nil, err
	}
	var err error
	m.patch, err = parsePatch(diff)
	return m, err
}

// cut splits a file at its first line "---".
func cut(data []byte) (top, diff []byte, ok bool) {
	for rest, at := data, 0; len(rest) > 0; {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if string(bytes.TrimRight(line, "\r")) == "---" {
			return data[:at], after, true
		}
		at += len(line) + 1
		rest = after
	}
	return nil, nil, false
}

// describe reads the header.
func (m *Mutant) describe(top []byte) error {
	var h header
	decoder := yaml.NewDecoder(bytes.NewReader(top))
	decoder.KnownFields(true)
	if err := decoder.Decode(&h); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("description: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	for _, field := range []struct{ name, value string }{
		{"misconception", h.Misconception}, {"caught", h.Caught}, {"cause", h.Cause},
	} {
		if strings.TrimSpace(field.value) == "" {
			return fmt.Errorf("%s: is missing", field.name)
		}
	}
	m.Misconception, m.Caught, m.Cause = strings.TrimSpace(h.Misconception), h.Caught, h.Cause
	m.Also, m.Regenerate, m.Common = h.Also, h.Regenerate, h.Common
	if strings.Contains(m.Misconception, "\n") {
		return errors.New("misconception: is one sentence on one line")
	}
	if h.Stage != nil {
		m.Stage = *h.Stage
	}
	return nil
}

// Render returns what the learner has who answers like this: the patched operator at the mutant's stage.
// generator is the path of controller-gen, which only a mutant with Regenerate needs; "" builds it.
func (m *Mutant) Render(ctx context.Context, c *course.Course, generator string) (course.Tree, error) {
	wrong, err := m.course(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.File, err)
	}
	tree, err := wrong.Render(m.Stage)
	if m.Regenerate {
		tree, err = (&course.Verifier{Course: wrong, Generator: generator}).Regenerate(ctx, m.Stage)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.File, err)
	}
	return tree, nil
}

// course is the course with the patched operator.
func (m *Mutant) course(ctx context.Context, c *course.Course) (*course.Course, error) {
	source, err := c.Source(m.Stage)
	if err != nil {
		return nil, err
	}
	wrong, err := m.patch.apply(ctx, source)
	if err != nil {
		return nil, err
	}
	return c.WithSource(wrong, m.Stage)
}
