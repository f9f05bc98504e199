package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// rightAnswers are the folders of whole operators in other styles, each a module of its own, relative to
// the checkout.
const rightAnswers = "labs/correct/*"

// unsound finds right answers that go vet complains about, or that do not compile, and generated files of
// theirs that are not what controller-gen makes of them.
func (a *app) unsound(ctx context.Context) ([]course.Problem, error) {
	modules, err := a.modulesIn(rightAnswers)
	if err != nil {
		return nil, err
	}
	var problems []course.Problem
	for _, module := range modules {
		a.progress("vetting " + module)
		if out, err := a.goTool(ctx, module, nil, "vet", "./..."); err != nil {
			problems = append(problems, course.Problem{File: module, Text: "go vet:\n" + firstLines(out)})
			continue
		}
		stale, _, err := a.generateRightAnswer(ctx, module)
		if err != nil {
			return nil, err
		}
		for _, file := range stale {
			problems = append(problems, course.Problem{File: filepath.Join(module, file), Text: "is not what controller-gen makes of it: bin/lab verify --fix"})
		}
	}
	return problems, ctx.Err()
}

// regenerateRightAnswers writes the generated files of all right answers, and returns those that changed.
func (a *app) regenerateRightAnswers(ctx context.Context) (changed []string, err error) {
	modules, err := a.modulesIn(rightAnswers)
	if err != nil {
		return nil, err
	}
	for _, module := range modules {
		stale, made, err := a.generateRightAnswer(ctx, module)
		if err != nil {
			return changed, err
		}
		fresh := course.Tree{}
		for _, file := range stale {
			if _, ok := made[file]; ok {
				fresh[file] = made[file]
			}
			changed = append(changed, filepath.Join(module, file))
		}
		if err := fresh.WriteTo(filepath.Join(a.root, module)); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// generateRightAnswer runs controller-gen on a copy of a module. It returns the module as it should be,
// and what is not so.
func (a *app) generateRightAnswer(ctx context.Context, module string) (stale []string, made course.Tree, err error) {
	tools, err := verdict.BuildTools(ctx, a.root, a.state)
	if err != nil {
		return nil, nil, err
	}
	have, err := course.ReadTree(filepath.Join(a.root, module))
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "lab-verify-")
	if err != nil {
		return nil, nil, fmt.Errorf("copy %s: %w", module, err)
	}
	defer os.RemoveAll(dir)
	if err := have.WriteTo(dir); err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, tools.ControllerGen, "object", "applyconfiguration", "crd", "rbac:roleName="+roleName(have),
		"paths=./...", "output:crd:artifacts:config="+harness.ManifestDir)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("generate the files of %s: %w\n%s", module, err, firstLines(string(out)))
	}
	if made, err = course.ReadTree(dir); err != nil {
		return nil, nil, err
	}
	return have.Diff(made), made, nil
}

// roleName is what an operator calls its role, which is up to it.
func roleName(operator course.Tree) string {
	var role struct {
		Metadata struct{ Name string }
	}
	if err := yaml.Unmarshal(operator[harness.RolePath].Data, &role); err != nil || role.Metadata.Name == "" {
		return "manager-role"
	}
	return role.Metadata.Name
}
