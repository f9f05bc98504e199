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

// Verifier proves with the Go toolchain what Lint cannot see: that every stage compiles, and that generated files are what
// controller-gen makes.
type Verifier struct {
	Course    *Course
	Generator string       // the path of controller-gen; "" builds the one that the checkout's go.mod pins
	Log       func(string) // is told what is being done, a line at a time
}

// Verify returns what is wrong with the stages of the course.
func (v *Verifier) Verify(ctx context.Context) (problems []Problem, err error) {
	err = v.run(ctx, func(dir string) error {
		for stage := range len(v.Course.Labs) + 1 {
			v.Log(fmt.Sprintf("Compiling stage %d", stage))
			target := filepath.Join(dir, fmt.Sprint(stage))
			tree, err := v.Course.Render(stage)
			if err == nil {
				err = tree.WriteTo(target)
			}
			if err != nil {
				return err
			}
			// vet type-checks every package and compiles what it imports; what it accepts, the compiler accepts, too.
			if out, err := command(ctx, target, "go", "vet", "./..."); err != nil {
				problems = append(problems, Problem{SourceDir, fmt.Sprintf("stage %d: go vet: %s", stage, out)})
			}
		}
		if len(problems) > 0 {
			return nil // controller-gen would say the same again
		}
		stale, err := v.stale(ctx, dir)
		for _, name := range stale.Paths() {
			problems = append(problems, Problem{name, "is not what controller-gen makes: make generate"})
		}
		return err
	})
	return problems, err
}

// Fix makes the generated files anew: in operator/, and their earlier versions under StagesDir. It returns the slash paths of
// the files that it changed.
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

// Regenerate makes the generated files of a rendered stage anew.
func (v *Verifier) Regenerate(ctx context.Context, tree Tree, stage int) (made Tree, err error) {
	err = v.run(ctx, func(dir string) error {
		made, err = v.generate(ctx, dir, tree)
		return err
	})
	for _, g := range v.Course.config.Generated {
		if g.home(stage) == "" {
			delete(made, g.Path)
		}
	}
	return made, err
}

// stale returns the generated files that differ from what controller-gen makes now: their new content, by their slash paths below
// the checkout.
func (v *Verifier) stale(ctx context.Context, dir string) (Tree, error) {
	stale := Tree{}
	for stage := range len(v.Course.Labs) + 1 {
		made := slices.DeleteFunc(slices.Clone(v.Course.config.Generated), func(g generated) bool { return !slices.Contains(g.Made, stage) })
		if len(made) == 0 {
			continue
		}
		v.Log(fmt.Sprintf("Generating the files of stage %d", stage))
		have, err := v.Course.Source(stage)
		if err != nil {
			return nil, err
		}
		want, err := v.Course.RenderSource(have, stage)
		if err == nil {
			want, err = v.generate(ctx, dir, want)
		}
		for _, g := range made {
			file, ok := want[g.Path]
			switch {
			case err != nil:
				return nil, fmt.Errorf("stage %d: %w", stage, err)
			case !ok:
				return nil, fmt.Errorf("stage %d: controller-gen makes no %s", stage, g.Path)
			case !file.Equal(have[g.Path]):
				stale[g.home(stage)] = file
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
	if err == nil {
		err = bare.WriteTo(dir)
	}
	if err != nil {
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
		v.Log("Building controller-gen")
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
