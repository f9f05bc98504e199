// Package practice sets and judges the tasks of the CKA practice, labs/cka: things to do with kubectl on a fresh cluster.
package practice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Dir is the folder of the tasks, a slash path below the checkout: labs/cka/NN-name.
const Dir = "labs/cka"

// Practice is all tasks, sorted by number, and the curriculum that they belong to, as https://github.com/cncf/curriculum publishes it.
// Weight is a domain's share of the exam, in percent.
type Practice struct {
	Version string
	Domains []struct {
		Name       string
		Weight     int
		Objectives []string
	}
	Tasks []*Task `yaml:"-"`
}

// Task is a question about a prepared cluster: task.yaml, with what else is in its folder.
type Task struct {
	course.Lab `yaml:",inline"` // Title, Checks and Dir. A check is blocked while one that it requires fails
	Objective  string           // one of the curriculum's
	Page       string           // of Kubernetes' documentation, about the objective
	Cluster    string           // "kind" if containers have to run, else "embedded": then any cluster will do
	// Values are what may be drawn, by name. The question, the set-up and the scripts show each as {{name}}.
	Values map[string][]string

	Name, Domain     string   `yaml:"-"` // its name in commands, such as cka-3
	Solutions, Wrong []Script `yaml:"-"` // sorted by name, patches last
	Program          Program  `yaml:"-"`
	Attempt          Attempt  `yaml:"-"` // as Save remembered it in Folder, where the learner's files are, too
	Folder           string   `yaml:"-"`
	question         string
}

// Attempt is what is remembered of a task. Its zero value is one that was never begun.
type Attempt struct {
	Seed    int64
	Started time.Time
	Result  *verdict.Result // the last verdict, nil before the first
	Layers  int             // how many layers of hints about it were shown
	Passed  time.Time       // the last time
	Took    time.Duration   // from the question to that pass
}

// Script is a way to do the task, right or wrong, for a shell. File is a slash path below the task's folder. A wrong one begins with how
// it has to fail; as .patch, the rest of it is a diff of a solution.
type Script struct{ Name, File, Text, Caught, Cause string }

// Load reads the tasks of the checkout at root, and the attempts below its folder state. programs has the code of each task, by the
// name of its folder. An error is one line.
func Load(root, state string, programs map[string]Program) (*Practice, error) {
	p := &Practice{}
	if err := course.Decode(root, Dir+"/curriculum.yaml", p); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		t := &Task{Lab: course.Lab{Dir: path.Join(Dir, name)}, Program: programs[name]}
		_, numberErr := fmt.Sscanf(name, "%02d-", &t.Number)
		t.Number = -t.Number
		t.Name = course.Name(t.Number)
		t.Folder = filepath.Join(state, t.Name)
		question, err := os.ReadFile(filepath.Join(root, t.Dir, "question.md"))
		if err := errors.Join(numberErr, err); err != nil {
			return nil, fmt.Errorf("%s: %s", t.Dir, plain.Line(err.Error()))
		}
		if err := course.Decode(root, t.Dir+"/task.yaml", t); err != nil {
			return nil, err
		}
		attempt, err := os.ReadFile(filepath.Join(t.Folder, "attempt.json"))
		if err == nil {
			err = json.Unmarshal(attempt, &t.Attempt)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read the last attempt: %w: remove %s", err, t.Folder)
		}
		for _, d := range p.Domains {
			if slices.Contains(d.Objectives, t.Objective) {
				t.Domain = d.Name
			}
		}
		folder := os.DirFS(filepath.Join(root, t.Dir))
		t.question, t.Solutions = string(question), scripts(folder, "solutions/*.sh", "solution-")
		t.Wrong = append(scripts(folder, "wrong/*.sh", ""), scripts(folder, "wrong/*.patch", "")...)
		p.Tasks = append(p.Tasks, t)
	}
	return p, nil
}

// scripts reads those files of a task's folder that match a pattern. prefix begins their names.
func scripts(folder fs.FS, pattern, prefix string) (all []Script) {
	files, _ := fs.Glob(folder, pattern) // the pattern is well formed; sorted
	for _, file := range files {
		text, _ := fs.ReadFile(folder, file) // lint refuses one that is empty
		s := Script{Name: prefix + strings.TrimSuffix(path.Base(file), path.Ext(file)), File: file, Text: string(text)}
		_, _ = fmt.Sscanf(s.Text, "# caught: %s\n# cause: %s\n", &s.Caught, &s.Cause) // a solution has no such lines
		all = append(all, s)
	}
	return all
}

// Save remembers the attempt.
func (t *Task) Save() error {
	data, err := json.MarshalIndent(t.Attempt, "", " ")
	if err := errors.Join(err, os.MkdirAll(t.Folder, 0o755)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.Folder, "attempt.json"), data, 0o600)
}

// Hint is that of a check for a cause, as [course.Course.Hint].
func (t *Task) Hint(check, cause string, layer int) string {
	return (&course.Course{Labs: []*course.Lab{&t.Lab}}).Hint(check, cause, layer)
}

// Values are the drawn values of an attempt, by name.
type Values map[string]string

// Draw draws the task's values. The same seed draws the same.
func (t *Task) Draw(seed int64) Values {
	drawn, random := Values{}, rand.New(rand.NewPCG(uint64(seed), 0))
	for _, name := range slices.Sorted(maps.Keys(t.Values)) {
		drawn[name] = t.Values[name][random.IntN(len(t.Values[name]))]
	}
	return drawn
}

// Question is the text with the values in it. It has to show each of them: a check must not ask for what nobody said.
func (t *Task) Question(v Values) (string, error) {
	for name := range v {
		if !strings.Contains(t.question, "{{"+name+"}}") {
			return "", fmt.Errorf("%s/question.md: it does not show {{%s}}", t.Dir, name)
		}
	}
	return v.Render(t.question)
}

var variable = regexp.MustCompile(`\{\{[a-z]+\}\}`)

// Render puts the values in the place of {{name}}.
func (v Values) Render(text string) (string, error) {
	for name, value := range v {
		text = strings.ReplaceAll(text, "{{"+name+"}}", value)
	}
	if unknown := variable.FindString(text); unknown != "" {
		return "", fmt.Errorf("task.yaml has no value for %s", unknown)
	}
	return text, nil
}
