// Package generate runs the course's own controller-gen on a learner's module, and compares what it makes with what the
// learner has.
package generate

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/labs/harness/internal/module"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// CauseFailed is the cause of a finding about code that controller-gen cannot work with.
	CauseFailed = "generator-failed"

	deepCopyFile = "zz_generated.deepcopy.go"
	pipeDelay    = 10 * time.Second // how long children of a command that has ended may hold its output open
)

// Generator runs controller-gen on one module.
type Generator struct {
	Binary    string   // the path of controller-gen
	Workspace string   // the learner's module, which is only read
	Scratch   string   // a folder for temporary files
	Env       []string // the whole environment of controller-gen, which calls the go command
}

// Results are the outputs of all generators for one module. A finding in one of them does not affect the others.
type Results struct {
	CRD  Output `json:"crd"`
	Role Output `json:"role"` // with the name "manager-role"
	// DeepCopy has the zz_generated.deepcopy.go of every package with API types, by its slash path in the module.
	DeepCopy map[string]Output `json:"deepCopy"`
	// RoleMarked says whether the module has an RBAC marker, even in a place that controller-gen does not read.
	RoleMarked bool `json:"roleMarked"`
}

// Output is what one run of controller-gen printed, or a finding if it failed.
type Output struct {
	Text    string           `json:"text,omitempty"`
	Finding *finding.Finding `json:"finding,omitempty"`
}

// Manifests are the objects in the output. If controller-gen failed, the error is its finding.
func (o Output) Manifests() ([]Manifest, error) {
	if o.Finding != nil {
		return nil, o.Finding
	}
	return parse("controller-gen", o.Text)
}

// Code is the text of the files in DeepCopy, by path. The error is a finding if there is none, or if controller-gen failed.
func (r Results) Code() (map[string]string, error) {
	code := map[string]string{}
	for path, output := range r.DeepCopy {
		if output.Finding != nil {
			return nil, output.Finding
		}
		code[path] = output.Text
	}
	if len(code) == 0 {
		return nil, finding.New(CauseFailed, "types that need deep copies",
			"controller-gen makes none: is the object:generate marker still in the package?")
	}
	return code, nil
}

// Run runs all generators, each on the packages that have a marker for it: to read packages takes most of the time. The results
// have findings about the module or the machine. Run returns an error only if ctx ends.
func (g Generator) Run(ctx context.Context) (Results, error) {
	types, rights, err := g.marked()
	if err != nil {
		failed := Output{Finding: finding.New(CauseFailed, "a Go module", "%v", err)}
		return Results{CRD: failed, Role: failed, DeepCopy: map[string]Output{deepCopyFile: failed}}, nil
	}
	r := Results{RoleMarked: len(rights) > 0, DeepCopy: map[string]Output{}}
	code := make([]Output, len(types))
	all, ctx := errgroup.WithContext(ctx)
	run := func(into *Output, generator string, packages ...string) {
		all.Go(func() (err error) {
			*into, err = g.run(ctx, generator, packages)
			return err
		})
	}
	run(&r.CRD, "crd", types...)
	run(&r.Role, "rbac:roleName=manager-role", rights...)
	for i, pkg := range types {
		run(&code[i], "object", pkg)
	}
	err = all.Wait()
	for i, pkg := range types {
		if code[i] != (Output{}) {
			r.DeepCopy[strings.TrimPrefix(pkg, "./")+"/"+deepCopyFile] = code[i]
		}
	}
	return r, err
}

// marked are the packages with API types and those with RBAC markers, as arguments of the go command, such as "./api/v1alpha1".
func (g Generator) marked() (types, rights []string, _ error) {
	err := module.Walk(g.Workspace, func(pkg module.Package, text []byte) {
		code := string(text)
		if strings.Contains(code, "+groupName") || strings.Contains(code, "+kubebuilder:object") {
			types = append(types, "./"+pkg.Folder)
		}
		if strings.Contains(code, "+kubebuilder:rbac:") {
			rights = append(rights, "./"+pkg.Folder)
		}
	})
	slices.Sort(types)
	slices.Sort(rights)
	return slices.Compact(types), slices.Compact(rights), err
}

// run runs one generator on the packages. Its output goes to stdout, because the names of controller-gen's files depend on the module.
func (g Generator) run(ctx context.Context, generator string, packages []string) (Output, error) {
	if len(packages) == 0 {
		return Output{}, nil
	}
	cmd := process.Tool(ctx, g.Workspace, g.Scratch, g.Env, g.Binary, generator, "paths="+strings.Join(packages, ";"), "output:stdout")
	cmd.WaitDelay = pipeDelay
	var printed, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &printed, &complaints
	err := cmd.Run()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return Output{Text: printed.String()}, nil
	case ctx.Err() != nil:
		return Output{}, ctx.Err()
	case errors.As(err, &exited) && exited.Exited():
		complaint := module.Complaint(complaints.String(), g.Workspace)
		return Output{Finding: finding.New(CauseFailed, "types that controller-gen can read", "%s", complaint)}, nil
	}
	return Output{Finding: finding.Machine("run controller-gen", err)}, nil
}
