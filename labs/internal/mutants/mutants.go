// Package mutants judges the course's answers: starters, solutions, right answers in other styles, and wrong answers. A wrong answer is
// a patch against the annotated operator, with the check that has to catch it and the cause whose hint has to be shown.
package mutants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// Dir is the folder of a lab's wrong answers, inside the lab's own.
const Dir = "mutants"

const extension = ".patch"

// Mutant is one wrong answer, as labs/NN-name/mutants/<id>.patch describes it: a YAML header, a line
// "---", and a diff of operator/ in the style of git.
type Mutant struct {
	// Lab is the lab that it answers, ID its name, unique in the lab.
	Lab int    `yaml:"-"`
	ID  string `yaml:"-"`
	// File is a slash path below the checkout.
	File string `yaml:"-"`
	// Misconception is what somebody believes who answers like this, in one sentence.
	Misconception string `yaml:"misconception"`
	// Caught is the check that has to be the first to fail, and Cause the cause it has to give.
	Caught string `yaml:"caught"`
	Cause  string `yaml:"cause"`
	// Also are checks that may fail besides. All others must not.
	Also []string `yaml:"also"`
	// Regenerate says that the learner ran the generators after their mistake.
	Regenerate bool `yaml:"regenerate"`

	diff string
}

// Load returns the wrong answers of all labs, sorted by lab and id. The error about a file is a [course.Problem].
func Load(c *course.Course) (all []*Mutant, err error) {
	for _, lab := range c.Labs {
		names, _ := filepath.Glob(filepath.Join(c.Root, filepath.FromSlash(lab.Dir), Dir, "*"+extension)) // sorted
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("read wrong answer: %w", err)
			}
			file := path.Join(lab.Dir, Dir, filepath.Base(name))
			m, err := Parse(lab.Number, file, data)
			if err != nil {
				return nil, course.Problem{File: file, Text: err.Error()}
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// Parse reads the file of a wrong answer to a lab. Errors do not repeat the file's name.
func Parse(lab int, file string, data []byte) (*Mutant, error) {
	m := &Mutant{Lab: lab, ID: strings.TrimSuffix(path.Base(file), extension), File: file}
	description, diff, found := strings.Cut("\n"+string(data), "\n---\n")
	if !found {
		return nil, errors.New(`there is no line "---" between the description and the diff`)
	}
	m.diff = diff
	decoder := yaml.NewDecoder(strings.NewReader(description))
	decoder.KnownFields(true)
	if err := decoder.Decode(m); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("description: %s", plain.Line(err.Error()))
	}
	m.Misconception = strings.TrimSpace(m.Misconception)
	if m.Misconception == "" || strings.Contains(m.Misconception, "\n") {
		return nil, errors.New("misconception: has to be one sentence on one line")
	}
	return m, nil
}

// Render returns the workspace of a learner who answers like this: the patched operator at the lab's stage.
// generator is the path of controller-gen, which only a mutant with Regenerate needs; "" builds it.
func (m *Mutant) Render(ctx context.Context, c *course.Course, generator string) (course.Tree, error) {
	tree, err := m.render(ctx, c)
	if err == nil && m.Regenerate {
		tree, err = (&course.Verifier{Course: c, Generator: generator, Log: func(string) {}}).Regenerate(ctx, tree, m.Lab)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.File, err)
	}
	return tree, nil
}

// render renders the patched operator.
func (m *Mutant) render(ctx context.Context, c *course.Course) (course.Tree, error) {
	source, err := c.Source(m.Lab)
	if err != nil {
		return nil, err
	}
	wrong, err := patch(ctx, source, course.SourceDir, m.diff)
	if err != nil {
		return nil, err
	}
	return c.RenderSource(wrong, m.Lab)
}

// patch returns the tree of the folder where after `git apply`. Every line that the diff names has to be there, character by character. Lines may have been
// added or removed above a hunk: git finds it all the same.
func patch(ctx context.Context, tree course.Tree, where, diff string) (course.Tree, error) {
	dir, err := os.MkdirTemp("", "wrong-answer-")
	if err != nil {
		return nil, fmt.Errorf("apply patch: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := tree.WriteTo(dir); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "git", "apply", "--whitespace=nowarn", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
	// Neither a repository around the folder nor somebody's own settings matter.
	cmd.Env = append(os.Environ(), "GIT_DIR="+os.DevNull, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git apply, in %s: %s", where, plain.Line(fmt.Sprintf("%s (%v)", out, err)))
	}
	return course.ReadTree(dir)
}
