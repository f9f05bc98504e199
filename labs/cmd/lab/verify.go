package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/packages"

	"github.com/example/operator-lab/labs/internal/course"
)

func newVerifyCommand(a *app) *cobra.Command {
	var fix bool
	cmd := &cobra.Command{
		Use:    "verify",
		Short:  "For authors: stages, generated files, lessons, go.mod files, formatting, platforms",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), fix) },
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "generate the generated files anew, and rewrite what documents have from elsewhere")
	return cmd
}

// verify compares what is written down with what it is made from.
func (a *app) verify(ctx context.Context, fix bool) error {
	if fix {
		if err := a.regenerate(ctx); err != nil {
			return err
		}
	}
	c, err := a.Course()
	if err != nil {
		return err
	}
	problems, err := (&course.Verifier{Course: c, Log: a.Progress}).Verify(ctx)
	if err != nil {
		return err
	}
	for _, look := range []func(context.Context) ([]course.Problem, error){a.lintCourse, a.untidy, a.unformatted, a.unbuildable} {
		found, err := look(ctx)
		if err != nil {
			return err
		}
		problems = append(problems, found...)
	}
	return a.printProblems(problems, "Everything is what it is made from.")
}

func (a *app) regenerate(ctx context.Context) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	changed, err := (&course.Verifier{Course: c, Log: a.Progress}).Fix(ctx)
	if err != nil {
		return err
	}
	documents, err := fixDocuments(c)
	if err != nil {
		return err
	}
	for _, file := range slices.Concat(changed, documents) {
		fmt.Fprintln(a.Out, "rewrote", file)
	}
	return nil
}

// modules are the folders of the project's go.mod files, relative to the checkout. Those of labs/correct are not
// among them: they need generated files, and `make proof` makes those.
func (a *app) modules() ([]string, error) {
	var modules []string
	for _, pattern := range []string{".", "operator", "operator/test/e2e", "scripts/tools", "clusters", "clusters/e2e", "clusters/e2e/example", browserModule} {
		found, err := filepath.Glob(filepath.Join(a.Root, filepath.FromSlash(pattern), "go.mod"))
		if err != nil {
			return nil, fmt.Errorf("find modules: %w", err)
		}
		for _, file := range found {
			rel, err := filepath.Rel(a.Root, filepath.Dir(file))
			if err != nil {
				return nil, fmt.Errorf("find modules: %w", err)
			}
			modules = append(modules, rel)
		}
	}
	return modules, nil
}

// untidy finds go.mod and go.sum files that `go mod tidy` would change.
func (a *app) untidy(ctx context.Context) ([]course.Problem, error) {
	a.Progress("comparing go.mod and go.sum files")
	modules, err := a.modules()
	if err != nil {
		return nil, err
	}
	var problems []course.Problem
	tidy := func(file, module string, flags ...string) {
		if out, err := a.goTool(ctx, module, append([]string{"mod", "tidy", "-diff"}, flags...)...); err != nil {
			problems = append(problems, course.Problem{File: file, Text: "go mod tidy would change it:\n" + firstLines(out)})
		}
	}
	for _, module := range modules {
		tidy(filepath.Join(module, "go.mod"), module)
	}
	// Those of components have other names; scripts/tools has no Go files that they would have to know. Pause has no sum.
	pinned, err := filepath.Glob(filepath.Join(a.Root, "clusters", "components", "modules", "*.sum"))
	for _, sum := range pinned {
		file := filepath.Join("clusters", "components", "modules", strings.TrimSuffix(filepath.Base(sum), ".sum")+".mod")
		tidy(file, "scripts/tools", "-modfile="+filepath.Join(a.Root, file))
	}
	return problems, errors.Join(err, ctx.Err())
}

// unformatted finds Go files that gofmt would change.
func (a *app) unformatted(ctx context.Context) ([]course.Problem, error) {
	a.Progress("comparing the formatting of Go files")
	cmd := exec.CommandContext(ctx, "gofmt", "-l", "clusters", "labs", "operator")
	cmd.Dir = a.Root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run gofmt: %w", err)
	}
	var problems []course.Problem
	for _, file := range strings.Fields(string(out)) {
		problems = append(problems, course.Problem{File: file, Text: "gofmt would change it"})
	}
	return problems, nil
}

// platforms are those that the commands, what suites are made of and the operator have to compile for; CI runs on the first.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/arm64"}

// unbuildable finds what of these would not compile for a platform. Types are checked from
// source, without the bodies of functions that are not ours: compiling all of Kubernetes for four platforms takes
// more than a minute each.
func (a *app) unbuildable(ctx context.Context) ([]course.Problem, error) {
	var problems []course.Problem
	for _, platform := range platforms {
		a.Progress("checking the types for " + platform)
		for module, patterns := range map[string][]string{".": {"./labs/cmd/...", "./labs/classroom/cmd/...", "./labs/harness/..."}, "operator": {"./cmd"}, "clusters": {"./..."}} {
			complaints, err := typeErrors(ctx, filepath.Join(a.Root, module), platform, patterns)
			if err != nil {
				return nil, err
			}
			for _, complaint := range complaints {
				problems = append(problems, course.Problem{File: module, Text: "does not compile for " + platform + ": " + complaint})
			}
		}
	}
	return problems, ctx.Err()
}

// typeErrors are what a compiler for the platform has to say about packages of the module in dir, and about those of
// the same module that they import.
func typeErrors(ctx context.Context, dir, platform string, patterns []string) (complaints []string, err error) {
	goos, goarch, _ := strings.Cut(platform, "/")
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedModule | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
		Context: ctx, Dir: dir, Env: append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+goos, "GOARCH="+goarch),
		ParseFile: func(files *token.FileSet, name string, src []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, dir+string(filepath.Separator)) {
				withoutBodies(file)
			}
			return file, err
		},
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load %v for %s: %w", patterns, platform, err)
	}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		if p.Module == nil || !p.Module.Main {
			return // without bodies, imports are unused
		}
		for _, e := range p.Errors {
			complaints = append(complaints, e.Error())
		}
	})
	return complaints, ctx.Err()
}

// withoutBodies takes the bodies of functions away.
func withoutBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}

// goTool runs the go command in a module of the checkout and returns what it printed.
func (a *app) goTool(ctx context.Context, module string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(a.Root, module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// shownLines is how much of a tool's output belongs into a problem.
const shownLines = 12

func firstLines(out string) string {
	lines := strings.SplitAfter(strings.TrimSpace(out), "\n")
	return strings.Join(lines[:min(len(lines), shownLines)], "")
}
