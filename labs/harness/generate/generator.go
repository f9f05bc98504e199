// Package generate runs the course's own controller-gen on a copy of a learner's module, and compares
// what it makes with what the learner has.
package generate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	gomodule "golang.org/x/mod/module"

	"github.com/example/operator-lab/labs/harness/internal/module"
	"github.com/example/operator-lab/labs/harness/once"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// CauseFailed is the cause of a finding about code that controller-gen cannot work with.
	CauseFailed = "generator-failed"

	// complaintLines is how much of a complaint is shown. The first line is nearly always the cause.
	complaintLines = 6
	// deepCopyFile is what controller-gen calls the code of its object generator.
	deepCopyFile = "zz_generated.deepcopy.go"
)

// Generator runs controller-gen for one module. Several processes may use Generators with the same
// Scratch at once: every result is made once and shared.
type Generator struct {
	// Binary is the path of controller-gen.
	Binary string
	// Workspace is the learner's module. It is only read.
	Workspace string
	// Scratch is a folder of this run, for the copy and for shared results.
	Scratch string
	// Env is the whole environment of controller-gen, which calls the go command.
	Env []string
}

// outcome is what one run of controller-gen gave: files, or a complaint about the learner's code.
type outcome struct {
	Files     map[string]string `json:"files,omitempty"`
	Complaint *finding.Finding  `json:"complaint,omitempty"`
}

// CustomResources returns the custom resource definitions that the module's types stand for. A finding
// with the cause [CauseFailed] says why controller-gen refused.
func (g Generator) CustomResources(ctx context.Context) ([]Manifest, error) {
	files, err := g.run(ctx, job{key: "crd", generator: "crd", out: true, marks: apiMarks})
	if err != nil {
		return nil, err
	}
	return parseAll(files)
}

// roleName is a role's name that can be an argument of controller-gen, in which a comma begins another one, and a part of a
// file's name.
var roleName = regexp.MustCompile(`^[A-Za-z0-9:_-]+(\.[A-Za-z0-9:_-]+)*$`)

// Role returns the objects that the module's RBAC markers stand for, with the given name of the role. There are none without
// markers. A name with other characters than letters, digits, colons, dots, dashes and underscores is a finding.
func (g Generator) Role(ctx context.Context, name string) ([]Manifest, error) {
	if !roleName.MatchString(name) {
		return nil, finding.New(CauseFailed, "a name for the role", "%q", name)
	}
	files, err := g.run(ctx, job{key: "rbac-" + name, generator: "rbac:roleName=" + name, out: true, marks: []string{roleMark}})
	if err != nil {
		return nil, err
	}
	return parseAll(files)
}

// roleMark begins every RBAC marker.
const roleMark = "+kubebuilder:rbac:"

// MentionsRole says whether an RBAC marker stands anywhere in the module's Go files, be it in a place where
// controller-gen looks or not.
func (g Generator) MentionsRole() (bool, error) {
	marked, err := packagesWith(g.Workspace, []string{roleMark})
	return len(marked) > 0, err
}

// DeepCopy returns the source of every zz_generated.deepcopy.go that the module should have, by its
// slash path in the module.
func (g Generator) DeepCopy(ctx context.Context) (map[string]string, error) {
	return g.run(ctx, job{key: "object", generator: "object", marks: apiMarks})
}

// apiMarks are the markers one of which every package with API types has.
var apiMarks = []string{"+groupName", "+kubebuilder:object"}

// job is one run of controller-gen.
type job struct {
	// key names the shared result.
	key string
	// generator is the generator with its options.
	generator string
	// out means that the result is a folder of its own, rather than code beside the types.
	out bool
	// marks are texts one of which stands in every package that has something to generate; the others
	// need not be read, which takes most of the time. None means all packages.
	marks []string
}

// run makes the files of one job once.
func (g Generator) run(ctx context.Context, j job) (map[string]string, error) {
	data, err := once.Do(ctx, filepath.Join(g.Scratch, "generated"), j.key, func() ([]byte, error) {
		result, err := g.generate(ctx, j)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	})
	if err != nil {
		return nil, err
	}
	var result outcome
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, fmt.Errorf("read shared result %s: %w", j.key, err)
	}
	if result.Complaint != nil {
		return nil, result.Complaint
	}
	return result.Files, nil
}

func (g Generator) generate(ctx context.Context, j job) (*outcome, error) {
	dir, err := os.MkdirTemp(g.Scratch, "generate-")
	if err != nil {
		return nil, fmt.Errorf("make folder for a copy of the workspace: %w", err)
	}
	defer os.RemoveAll(dir)
	// The go command prints paths without symbolic links; the complaint is shortened by this path.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("make folder for a copy of the workspace: %w", err)
	}
	copied := filepath.Join(dir, "module")
	if err := copyModule(g.Workspace, copied); err != nil {
		return nil, err
	}
	paths, err := packages(copied, j.marks)
	if err != nil {
		return nil, err
	}
	args := []string{j.generator, paths}
	if j.out {
		args = append(args, "output:stdout") // its files would have names of the learner's choice, such as +groupName=../../x
	}
	printed, complaint, err := g.execute(ctx, dir, copied, args)
	switch {
	case complaint != nil || err != nil:
		return &outcome{Complaint: complaint}, err
	case j.out:
		return &outcome{Files: map[string]string{"made by controller-gen": printed}}, nil
	}
	files, err := readFiles(copied, deepCopyFile)
	if f := (*finding.Finding)(nil); errors.As(err, &f) {
		return &outcome{Complaint: f}, nil
	}
	return &outcome{Files: files}, err
}

// packages is controller-gen's argument for the packages in which one of the marks stands, or for all
// packages when it stands in none: then it is controller-gen that says so.
func packages(dir string, marks []string) (string, error) {
	marked, err := packagesWith(dir, marks)
	if err != nil {
		return "", err
	}
	if len(marked) == 0 {
		return "paths=./...", nil
	}
	return "paths=" + strings.Join(slices.Sorted(maps.Keys(marked)), ";"), nil
}

// packagesWith are the packages in which one of the marks stands.
func packagesWith(dir string, marks []string) (map[string]bool, error) {
	marked := map[string]bool{}
	err := module.Walk(dir, func(pkg string, text []byte) error {
		if slices.ContainsFunc(marks, func(mark string) bool { return bytes.Contains(text, []byte(mark)) }) {
			if gomodule.CheckImportPath(path.Join("x", pkg)) != nil { // controller-gen takes "a;b" for two packages
				return finding.New(CauseFailed, "folders whose names can be those of packages", "%q", pkg)
			}
			marked["./"+pkg] = true
		}
		return nil
	})
	return marked, err
}

// pipeDelay is how long the output is still read once the command has ended: on a starved machine the last of it
// comes late, and children of a killed command may hold the pipe open for ever.
const pipeDelay = 10 * time.Second

// execute runs controller-gen in copied, which is in dir, where it may write, and returns what it prints. Its exit code is the learner's business;
// that it could not be run, or did not end in time, is not.
func (g Generator) execute(ctx context.Context, dir, copied string, args []string) (printed string, _ *finding.Finding, _ error) {
	cmd := process.Tool(ctx, copied, dir, g.Env, g.Binary, args...)
	cmd.WaitDelay = pipeDelay
	var output, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &complaints
	err := cmd.Run()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return output.String(), nil, nil
	case ctx.Err() != nil:
		return "", nil, fmt.Errorf("run controller-gen %s: %w", args[0], ctx.Err())
	case !errors.As(err, &exited):
		return "", nil, finding.Machine("run controller-gen", err)
	}
	return "", finding.New(CauseFailed, "types that controller-gen can read", "%s", complaint(complaints.String(), copied)), nil
}

// complaint keeps the lines that name a place in the learner's code, with paths as the learner knows
// them, or the first lines when no place is named.
func complaint(output, dir string) string {
	output = strings.ReplaceAll(output, dir+string(filepath.Separator), "")
	var places, others []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "Usage:"):
		case strings.Contains(line, ".go:"):
			places = append(places, line)
		default:
			others = append(others, line)
		}
	}
	if len(places) == 0 {
		places = others
	}
	slices.Sort(places) // every generator may complain about the same place, and in any order
	places = slices.Compact(places)
	return strings.Join(places[:min(len(places), complaintLines)], "\n")
}

// readFiles reads the files below dir, only those called name unless it is empty.
func readFiles(dir, name string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return fs.SkipAll // the generator had nothing to write
		}
		if err != nil || entry.IsDir() || (name != "" && entry.Name() != name) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read generated files: %w", err)
	}
	return files, nil
}
