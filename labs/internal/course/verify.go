package course

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Verifier proves with the toolchain what Lint cannot see: that every stage builds, and that generated files are what their
// generator makes.
type Verifier struct {
	Course *Course
	// Generator is the path of controller-gen; "" builds the one that the checkout's go.mod pins.
	Generator string
	// Log is told what is being done, a line at a time; nil for silence.
	Log func(string)

	dir string // temporary
}

// Verify returns what is wrong with the stages of the course.
func (v *Verifier) Verify(ctx context.Context) (problems []Problem, err error) {
	complain := func(format string, args ...any) {
		problems = append(problems, Problem{SourceDir, 0, fmt.Sprintf(format, args...)})
	}
	err = v.run(ctx, func() error {
		for stage := range len(v.Course.Labs) + 1 {
			tree, err := v.Course.Render(stage)
			if err != nil {
				return err
			}
			dir := filepath.Join(v.dir, fmt.Sprint(stage))
			if err := tree.WriteTo(dir); err != nil {
				return err
			}
			v.log("Compiling stage %d", stage)
			// vet type-checks every package and compiles what it imports; what it accepts, the compiler accepts, too.
			if out, err := command(ctx, dir, "go", "vet", "./..."); err != nil {
				complain("stage %d: go vet: %s", stage, out)
				continue
			}
			made, err := v.generate(ctx, stage)
			if err != nil {
				complain("stage %d: %v", stage, err)
				continue
			}
			for _, g := range v.Course.config.Generated {
				fresh := stage >= g.last() || slices.Contains(g.Made, stage)
				if fresh && !tree[g.Path].Equal(made[g.Path]) {
					complain("stage %d: %s is not what controller-gen makes of it: bin/labdev verify --fix", stage, g.Path)
				}
			}
		}
		// controller-gen reads comments, so a region's marker in the wrong place would change the definition.
		s, err := v.Course.source()
		if err != nil {
			return err
		}
		annotated, err := v.generateFrom(ctx, s.files)
		for _, g := range v.Course.config.Generated {
			if err == nil && !annotated[g.Path].Equal(s.files[g.Path]) {
				complain("%s differs when it is made of the annotated operator: "+
					"a region's marker stands where controller-gen reads it, or hides what it should read", g.Path)
			}
		}
		return err
	})
	return problems, err
}

// Fix makes the generated files anew: in operator/, and their earlier versions under StagesDir. It returns the slash paths of
// the files that it changed. What was loaded is out of date then: load the course again.
func (v *Verifier) Fix(ctx context.Context) (changed []string, err error) {
	err = v.run(ctx, func() error {
		root, err := os.OpenRoot(v.Course.Root)
		if err != nil {
			return err
		}
		defer root.Close()
		for stage := range len(v.Course.Labs) + 1 {
			made, err := v.generate(ctx, stage)
			if err != nil {
				return err
			}
			for _, g := range v.Course.config.Generated {
				file := SourceDir + "/" + g.Path
				if stage < g.last() {
					file = StagesDir + "/" + g.kept(stage)
				}
				have, _ := ReadFile(root, file)
				switch want, ok := made[g.Path]; {
				case !slices.Contains(g.Made, stage):
				case !ok:
					return fmt.Errorf("stage %d: controller-gen makes no %s", stage, g.Path)
				case !have.Equal(want):
					if err := (Tree{file: want}).WriteTo(v.Course.Root); err != nil {
						return err
					}
					changed = append(changed, file)
				}
			}
		}
		return nil
	})
	return changed, err
}

// Regenerate returns a stage as it is after the generator ran over it: every generated file that the stage has, made anew.
func (v *Verifier) Regenerate(ctx context.Context, stage int) (tree Tree, err error) {
	err = v.run(ctx, func() error {
		if tree, err = v.Course.Render(stage); err != nil {
			return err
		}
		made, err := v.generate(ctx, stage)
		if err != nil {
			return err
		}
		for _, g := range v.Course.config.Generated {
			if _, ok := tree[g.Path]; ok {
				delete(tree, g.Path)
				for name, file := range made { // whose names follow from the types
					if path.Dir(name) == path.Dir(g.Path) {
						tree[name] = file
					}
				}
			}
		}
		return nil
	})
	return tree, err
}

// generate returns what the generator makes of a stage.
func (v *Verifier) generate(ctx context.Context, stage int) (Tree, error) {
	tree, err := v.Course.renderWritten(stage)
	if err != nil {
		return nil, err
	}
	v.log("Generating the files of stage %d", stage)
	return v.generateFrom(ctx, tree)
}

// generateFrom runs the generator, as the operator's Makefile does, on a copy of a tree without its generated files and
// returns the tree that comes out.
func (v *Verifier) generateFrom(ctx context.Context, tree Tree) (Tree, error) {
	const header = "hack/boilerplate.go.txt"
	bare, object := maps.Clone(tree), "object"
	for _, g := range v.Course.config.Generated {
		delete(bare, g.Path)
	}
	if _, ok := tree[header]; ok {
		object += ":headerFile=" + header
	}
	dir, err := os.MkdirTemp(v.dir, "generated-")
	if err != nil {
		return nil, err
	}
	if err := bare.WriteTo(dir); err != nil {
		return nil, err
	}
	if out, err := command(ctx, dir, v.Generator, object, "crd", "rbac:roleName=manager-role", "webhook", "paths=./...",
		"output:crd:artifacts:config=config/crd/bases"); err != nil {
		return nil, fmt.Errorf("controller-gen: %s", out)
	}
	return ReadTree(dir)
}

// run calls work with a temporary folder and a generator.
func (v *Verifier) run(ctx context.Context, work func() error) (err error) {
	if v.dir, err = os.MkdirTemp("", "lab-verify-"); err != nil {
		return err
	}
	defer os.RemoveAll(v.dir)
	if v.Generator == "" {
		v.log("Building controller-gen")
		v.Generator = filepath.Join(v.dir, "controller-gen")
		defer func() { v.Generator = "" }()
		if out, err := command(ctx, v.Course.Root, "go", "build", "-o", v.Generator, "sigs.k8s.io/controller-tools/cmd/controller-gen"); err != nil {
			return fmt.Errorf("build controller-gen: %s", out)
		}
	}
	if err := work(); err != nil {
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
