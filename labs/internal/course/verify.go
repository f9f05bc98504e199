package course

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Verifier proves with the toolchain what Lint cannot see: that every stage compiles, and that generated files are what
// controller-gen makes.
type Verifier struct {
	Course *Course
	// Generator is the path of controller-gen; "" builds the one that the checkout's go.mod pins.
	Generator string
	// Log is told what is being done, a line at a time; nil for silence.
	Log func(string)
}

// Verify returns what is wrong with the stages of the course.
func (v *Verifier) Verify(ctx context.Context) (problems []Problem, err error) {
	err = v.run(ctx, func(dir string) error {
		for stage := range len(v.Course.Labs) + 1 {
			v.log("Compiling stage %d", stage)
			tree, err := v.Course.Render(stage)
			if err != nil {
				return err
			}
			target := filepath.Join(dir, fmt.Sprint(stage))
			if err := tree.WriteTo(target); err != nil {
				return err
			}
			// vet type-checks every package and compiles what it imports; what it accepts, the compiler accepts, too.
			if out, err := command(ctx, target, "go", "vet", "./..."); err != nil {
				problems = append(problems, Problem{SourceDir, 0, fmt.Sprintf("stage %d: go vet: %s", stage, out)})
			}
		}
		if len(problems) > 0 {
			return nil // controller-gen would say the same again
		}
		stale, err := v.stale(ctx, dir)
		for _, name := range stale.Paths() {
			problems = append(problems, Problem{name, 0, "is not what controller-gen makes: bin/labdev verify --fix"})
		}
		return err
	})
	return problems, err
}

// Fix makes the generated files anew: in operator/, and their earlier versions under StagesDir. It returns the slash paths of
// the files that it changed. What was loaded is out of date then: load the course again.
func (v *Verifier) Fix(ctx context.Context) (changed []string, err error) {
	err = v.run(ctx, func(dir string) error {
		stale, err := v.stale(ctx, dir)
		if err != nil {
			return err
		}
		changed = stale.Paths()
		return stale.WriteTo(v.Course.Root)
	})
	return changed, err
}

// Regenerate returns a stage as it is after the generator ran over it: every generated file that the stage has, made anew.
func (v *Verifier) Regenerate(ctx context.Context, stage int) (tree Tree, err error) {
	err = v.run(ctx, func(dir string) error {
		if tree, err = v.Course.renderWritten(stage); err == nil {
			tree, err = v.generate(ctx, dir, tree)
		}
		for _, g := range v.Course.config.Generated {
			if g.home(stage) == "" {
				delete(tree, g.Path)
			}
		}
		return err
	})
	return tree, err
}

// stale returns the generated files that are not what controller-gen makes now, as it makes them, by their slash paths below the
// checkout.
func (v *Verifier) stale(ctx context.Context, dir string) (Tree, error) {
	root, err := os.OpenRoot(v.Course.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	stale := Tree{}
	for stage := range len(v.Course.Labs) + 1 {
		if !slices.ContainsFunc(v.Course.config.Generated, func(g generated) bool { return slices.Contains(g.Made, stage) }) {
			continue
		}
		v.log("Generating the files of stage %d", stage)
		tree, err := v.Course.renderWritten(stage)
		if err == nil {
			tree, err = v.generate(ctx, dir, tree)
		}
		for _, g := range v.Course.config.Generated {
			have, _ := ReadFile(root, g.home(stage))
			want, ok := tree[g.Path]
			switch {
			case err != nil:
				return nil, fmt.Errorf("stage %d: %w", stage, err)
			case !slices.Contains(g.Made, stage):
			case !ok:
				return nil, fmt.Errorf("stage %d: controller-gen makes no %s", stage, g.Path)
			case !have.Equal(want):
				stale[g.home(stage)] = want
			}
		}
	}
	return stale, nil
}

// generate runs controller-gen, as the operator's Makefile does, on a copy of a tree without its generated files and returns
// the tree that comes out.
func (v *Verifier) generate(ctx context.Context, dir string, tree Tree) (Tree, error) {
	bare := maps.Clone(tree)
	for _, g := range v.Course.config.Generated {
		delete(bare, g.Path)
	}
	dir, err := os.MkdirTemp(dir, "generated-")
	if err != nil {
		return nil, err
	}
	if err := bare.WriteTo(dir); err != nil {
		return nil, err
	}
	if out, err := command(ctx, dir, v.Generator, "object:headerFile=hack/boilerplate.go.txt", "crd", "rbac:roleName=manager-role", "webhook", "paths=./...",
		"output:crd:artifacts:config=config/crd/bases"); err != nil {
		return nil, fmt.Errorf("controller-gen: %s", out)
	}
	return ReadTree(dir)
}

// run calls work with a temporary folder, and with a generator.
func (v *Verifier) run(ctx context.Context, work func(dir string) error) error {
	dir, err := os.MkdirTemp("", "lab-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if v.Generator == "" {
		v.log("Building controller-gen")
		v.Generator = filepath.Join(dir, "controller-gen")
		defer func() { v.Generator = "" }()
		if out, err := command(ctx, v.Course.Root, "go", "build", "-o", v.Generator, "sigs.k8s.io/controller-tools/cmd/controller-gen"); err != nil {
			return fmt.Errorf("build controller-gen: %s", out)
		}
	}
	if err := work(dir); err != nil {
		return err
	}
	return ctx.Err()
}

// command runs a program and returns what it printed, without the folder's name, or the error's text if it printed nothing.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(strings.ReplaceAll(string(out), dir+string(filepath.Separator), ""))
	if err != nil && text == "" {
		text = err.Error()
	}
	return text, err
}

func (v *Verifier) log(format string, args ...any) {
	if v.Log != nil {
		v.Log(fmt.Sprintf(format, args...))
	}
}
