package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/packages"

	"github.com/example/operator-lab/labs/internal/course"
)

func newVerifyCommand(a *app) *cobra.Command {
	var fix bool
	cmd := &cobra.Command{
		Use:    "verify",
		Short:  "For authors: all that lint finds, stages, generated files, go.mod files, formatting, platforms",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), fix) },
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "make the generated files anew")
	return cmd
}

// verify compares what is written down with what it is made from.
func (a *app) verify(ctx context.Context, fix bool) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	if fix {
		changed, err := (&course.Verifier{Course: c, Log: a.Progress}).Fix(ctx)
		for _, file := range changed {
			fmt.Fprintln(a.Out, "rewrote", file)
		}
		if err != nil {
			return err
		}
		if c, err = a.Course(); err != nil {
			return err
		}
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
	return a.printProblems(problems, "Generated files are up to date.")
}

// modules are the folders of the go.mod files that verify tidies. Those of labs/correct need generated files.
var modules = []string{".", "operator", "operator/test/e2e", "scripts/tools", "clusters", "clusters/e2e", "clusters/e2e/example", browserModule}

// untidy finds go.mod and go.sum files that `go mod tidy` would change.
func (a *app) untidy(ctx context.Context) (problems []course.Problem, err error) {
	a.Progress("comparing go.mod and go.sum files")
	tidy := func(file, module string, flags ...string) {
		cmd := exec.CommandContext(ctx, "go", append([]string{"mod", "tidy", "-diff"}, flags...)...)
		cmd.Dir, cmd.Env = filepath.Join(a.Root, module), append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			problems = append(problems, course.Problem{File: file, Text: "go mod tidy would change it:\n" + strings.TrimSpace(string(out))})
		}
	}
	for _, module := range modules {
		tidy(filepath.Join(module, "go.mod"), module)
	}
	// Those of components have other names; scripts/tools has no Go files that they would have to know. Pause has no sum.
	pinned, err := filepath.Glob(filepath.Join(a.Root, "clusters", "components", "modules", "*.sum"))
	for _, sum := range pinned {
		file := strings.TrimSuffix(sum, ".sum") + ".mod"
		tidy(file, "scripts/tools", "-modfile="+file)
	}
	return problems, err
}

// unformatted finds Go files that gofmt would change.
func (a *app) unformatted(ctx context.Context) (problems []course.Problem, err error) {
	a.Progress("comparing the formatting of Go files")
	cmd := exec.CommandContext(ctx, "gofmt", "-l", "clusters", "labs", "operator")
	cmd.Dir = a.Root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run gofmt: %w", err)
	}
	for _, file := range strings.Fields(string(out)) {
		problems = append(problems, course.Problem{File: file, Text: "gofmt would change it"})
	}
	return problems, nil
}

// platforms have to compile, in addition to the one that CI runs on.
var platforms = []string{"linux/arm64", "darwin/arm64"}

// unbuildable finds what of the commands, the harness and the operator would not compile for a platform.
func (a *app) unbuildable(ctx context.Context) (problems []course.Problem, err error) {
	for _, platform := range platforms {
		a.Progress("checking the types for " + platform)
		for module, patterns := range map[string][]string{".": {"./labs/cmd/...", "./labs/classroom/cmd/...", "./labs/harness/..."}, "operator": {"./cmd"}, "clusters": {"./..."}} {
			found, err := typeErrors(ctx, filepath.Join(a.Root, module), platform, patterns)
			if err != nil {
				return nil, err
			}
			for _, text := range found {
				problems = append(problems, course.Problem{File: module, Text: "does not compile for " + platform + ": " + text})
			}
		}
	}
	return problems, nil
}

// typeErrors are what a compiler for the platform has to say about packages of the module in dir, and about those of the same
// module that they import. Types are checked from source, without the bodies of other modules' functions: compiling all of
// Kubernetes takes more than a minute for each platform.
func typeErrors(ctx context.Context, dir, platform string, patterns []string) (found []string, err error) {
	goos, goarch, _ := strings.Cut(platform, "/")
	loaded, err := packages.Load(&packages.Config{
		Mode:    packages.LoadAllSyntax | packages.NeedModule,
		Context: ctx, Dir: dir, Env: append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+goos, "GOARCH="+goarch),
		ParseFile: func(files *token.FileSet, name string, src []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, dir+string(filepath.Separator)) {
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok {
						f.Body = nil
					}
				}
			}
			return file, err
		},
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load %v for %s: %w", patterns, platform, err)
	}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if p.Module != nil && p.Module.Main { // without bodies, other modules have unused imports
				found = append(found, e.Error())
			}
		}
	})
	return found, ctx.Err()
}
