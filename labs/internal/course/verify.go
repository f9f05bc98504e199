package course

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Verifier proves with the toolchain what Lint cannot see: that every stage
// builds, and that generated files are what their generator makes.
type Verifier struct {
	Course *Course
	// Generator is the path of controller-gen; "" builds the one that the
	// checkout's go.mod pins.
	Generator string
	// Log is told what is being done, a line at a time; nil for silence.
	Log func(string)

	dir string // temporary
}

const (
	generatorPackage = "sigs.k8s.io/controller-tools/cmd/controller-gen"
	licenceHeader    = "hack/boilerplate.go.txt"
)

// generatorArgs are what the operator's own Makefile gives controller-gen, in
// its targets generate and manifests.
func generatorArgs(tree Tree) []string {
	object := "object"
	if _, ok := tree[licenceHeader]; ok {
		object += ":headerFile=" + licenceHeader
	}
	return []string{object, "crd", "rbac:roleName=manager-role", "webhook",
		"paths=./...", "output:crd:artifacts:config=config/crd/bases"}
}

// Fix generates the generated files anew: in operator/, and their earlier
// versions under StagesDir. It returns the slash paths of the files that it
// changed. What was loaded is out of date then: load the course again.
func (v *Verifier) Fix(ctx context.Context) (changed []string, err error) {
	defer v.enter(ctx, &err)()
	if err != nil {
		return nil, err
	}
	s, err := v.Course.source()
	if err != nil {
		return nil, err
	}
	for _, g := range v.Course.config.Generated {
		for _, stage := range g.Made[:len(g.Made)-1] {
			made, err := v.generateStage(ctx, stage)
			if err != nil {
				return changed, err
			}
			changed, err = v.update(changed, g.kept(stage), s.kept[g.kept(stage)], made[g.Path].Data)
			if err != nil {
				return changed, err
			}
		}
	}
	made, err := v.generate(ctx, "annotated", s.files)
	if err != nil {
		return changed, err
	}
	for _, g := range v.Course.config.Generated {
		changed, err = v.update(changed, SourceDir+"/"+g.Path, s.files[g.Path].Data, made[g.Path].Data)
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// Regenerate returns a stage as it is after the generator ran over it: every
// generated file that the stage has, made anew.
func (v *Verifier) Regenerate(ctx context.Context, stage int) (tree Tree, err error) {
	defer v.enter(ctx, &err)()
	if err != nil {
		return nil, err
	}
	if tree, err = v.Course.Render(stage); err != nil {
		return nil, err
	}
	made, err := v.generate(ctx, fmt.Sprintf("stage-%d", stage), tree)
	if err != nil {
		return nil, err
	}
	folders := map[string]bool{} // a file's name follows from the types
	for _, g := range v.Course.config.Generated {
		if _, ok := g.madeAt(stage); ok {
			folders[path.Dir(g.Path)] = true
		}
	}
	maps.DeleteFunc(made, func(name string, _ File) bool {
		_, kept := tree[name]
		return !kept && !folders[path.Dir(name)]
	})
	return made, nil
}

// generateStage returns what the generator makes of a stage.
func (v *Verifier) generateStage(ctx context.Context, stage int) (Tree, error) {
	tree, err := v.Course.render(stage, false)
	if err != nil {
		return nil, err
	}
	return v.generate(ctx, fmt.Sprintf("stage-%d", stage), tree)
}

func (v *Verifier) update(changed []string, file string, old, made []byte) ([]string, error) {
	if made == nil || bytes.Equal(old, made) {
		return changed, nil
	}
	name := filepath.Join(v.Course.Root, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return changed, err
	}
	return append(changed, file), os.WriteFile(name, made, 0o644)
}

// Verify returns what is wrong with the stages of the course.
func (v *Verifier) Verify(ctx context.Context) (problems []Problem, err error) {
	defer v.enter(ctx, &err)()
	if err != nil {
		return nil, err
	}
	s, err := v.Course.source()
	if err != nil {
		return nil, err
	}
	annotated, err := v.generate(ctx, "annotated", s.files)
	if err != nil {
		return []Problem{{SourceDir, 0, err.Error()}}, nil
	}
	for stage := 0; stage <= len(v.Course.Labs); stage++ {
		found, err := v.stage(ctx, stage, annotated)
		if err != nil {
			return problems, err
		}
		problems = append(problems, found...)
	}
	return problems, ctx.Err()
}

// stage verifies one stage; annotated is what the generator makes of the
// annotated operator, which the last stage must make too.
func (v *Verifier) stage(ctx context.Context, stage int, annotated Tree) (problems []Problem, err error) {
	tree, err := v.Course.Render(stage)
	if err != nil {
		return []Problem{{SourceDir, 0, err.Error()}}, nil //nolint:nilerr // it is what the author has to fix
	}
	name := fmt.Sprintf("stage-%d", stage)
	complain := func(format string, args ...any) {
		problems = append(problems, Problem{SourceDir, 0, fmt.Sprintf("stage %d: ", stage) + fmt.Sprintf(format, args...)})
	}
	for _, file := range unformatted(tree) {
		complain("%s is not gofmt'ed", file)
	}
	dir := filepath.Join(v.dir, name)
	if err := tree.WriteTo(dir); err != nil {
		return nil, err
	}
	v.log("Verifying " + name)
	// vet type-checks every package and compiles what it imports; what it
	// accepts, the compiler accepts too.
	if out, err := v.run(ctx, dir, "go", "vet", "./..."); err != nil {
		complain("go vet: %s", out)
		return problems, nil //nolint:nilerr // out says what the error says
	}
	made, err := v.generate(ctx, name, tree)
	if err != nil {
		complain("%v", err)
		return problems, nil
	}
	for _, file := range v.staleAt(stage, tree, made) {
		complain("%s is not what controller-gen makes of it: bin/lab verify --fix", file)
	}
	if stage == len(v.Course.Labs) {
		for _, file := range v.Course.generatedPaths() {
			if !made[file].Equal(annotated[file]) {
				complain("%s differs when it is made of the annotated operator: a region's marker stands where controller-gen reads it, or hides what it should read", file)
			}
		}
	}
	return problems, nil
}

// staleAt returns the generated files that should be fresh at a stage and are
// not: those that the course makes there, and from their last version on all.
func (v *Verifier) staleAt(stage int, tree, made Tree) (stale []string) {
	for _, g := range v.Course.config.Generated {
		if stage < g.last() && !slices.Contains(g.Made, stage) {
			continue
		}
		if !bytes.Equal(tree[g.Path].Data, made[g.Path].Data) {
			stale = append(stale, g.Path)
		}
	}
	return stale
}

func (c *Course) generatedPaths() (paths []string) {
	for _, g := range c.config.Generated {
		paths = append(paths, g.Path)
	}
	return paths
}

func unformatted(tree Tree) (files []string) {
	for _, file := range tree.Paths() {
		if path.Ext(file) != ".go" {
			continue
		}
		formatted, err := format.Source(tree[file].Data)
		if err != nil || !bytes.Equal(formatted, tree[file].Data) {
			files = append(files, file)
		}
	}
	return files
}

// generate runs the generator on a copy of a tree without its generated files
// and returns the tree that comes out.
func (v *Verifier) generate(ctx context.Context, name string, tree Tree) (Tree, error) {
	bare := maps.Clone(tree)
	for _, file := range v.Course.generatedPaths() {
		delete(bare, file)
	}
	dir, err := os.MkdirTemp(v.dir, name+"-generated-")
	if err != nil {
		return nil, err
	}
	if err := bare.WriteTo(dir); err != nil {
		return nil, err
	}
	v.log("Generating the files of " + name)
	if out, err := v.run(ctx, dir, v.Generator, generatorArgs(tree)...); err != nil {
		return nil, fmt.Errorf("generate %s: %s", name, out)
	}
	return ReadTree(dir)
}

// enter makes the temporary folder, and builds the generator if need be; what
// it returns removes the folder.
func (v *Verifier) enter(ctx context.Context, err *error) (leave func()) {
	v.dir, *err = os.MkdirTemp("", "lab-verify-")
	if *err != nil {
		return func() {}
	}
	given := v.Generator
	if given == "" {
		*err = v.buildGenerator(ctx)
	}
	return func() {
		v.Generator = given
		_ = os.RemoveAll(v.dir)
	}
}

func (v *Verifier) buildGenerator(ctx context.Context) error {
	v.log("Building controller-gen")
	v.Generator = filepath.Join(v.dir, "controller-gen")
	if out, err := v.run(ctx, v.Course.Root, "go", "build", "-o", v.Generator, generatorPackage); err != nil {
		return fmt.Errorf("build controller-gen: %s", out)
	}
	return nil
}

// run runs a program and returns what it printed, without the temporary
// folder's name, or the error's text if it printed nothing.
func (v *Verifier) run(ctx context.Context, dir, name string, args ...string) (string, error) {
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

func (v *Verifier) log(line string) {
	if v.Log != nil {
		v.Log(line)
	}
}
