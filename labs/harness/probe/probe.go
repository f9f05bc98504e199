// Package probe finds out what copies of the learner's objects share with their originals. It compiles a program of ours that copies
// such objects into the learner's module. It writes nothing there: the program is in an overlay of the go command only.
package probe

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"time"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/harness/internal/module"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

const (
	// CauseBuild is the cause of a finding about a module that does not compile.
	CauseBuild = "does-not-build"
	// CauseNoAnswer is the cause if the program was compiled but wrote no report.
	CauseNoAnswer = "no-answer"

	folder     = "internal/labprobe" // the program's folder in the module, by the overlay
	scaffolded = "api/v1alpha1"      // where Kubebuilder puts the types
	runLimit   = 5 * time.Second     // the program needs 50 ms; the rest is for a busy machine
	pipeDelay  = 5 * time.Second     // how long children of a command that has ended may hold its output open
)

var (
	//go:embed main.go.tmpl
	mainText     string
	mainTemplate = template.Must(template.New("main.go").Parse(mainText))
)

// The objects that the program copies, and others as targets whose content DeepCopyInto has to replace.
const (
	object = `{"metadata":{"name":"a","resourceVersion":"1","labels":{"a":"b"},"annotations":{"a":"b"},"finalizers":["a.b/c"],` +
		`"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true}]},"spec":{"size":3,"containerPort":11211},` +
		`"status":{"conditions":[{"type":"Available","status":"True","reason":"A","message":"a","lastTransitionTime":"2026-01-02T03:04:05Z",` +
		`"observedGeneration":1}]}}`
	other = `{"metadata":{"name":"b","labels":{"c":"d"}},"spec":{"size":4,"containerPort":4},` +
		`"status":{"conditions":[{"type":"B"},{"type":"C"}]}}`
	list   = `{"metadata":{"resourceVersion":"1"},"items":[` + object + `]}`
	others = `{"metadata":{"resourceVersion":"2"},"items":[` + other + `,` + other + `]}`
)

// Copies are the results of all copy methods, by the name of the Go type, Memcached or MemcachedList.
type Copies map[string][]Copy

// Copy is the result of one copy method.
type Copy struct {
	Method string // DeepCopy, DeepCopyInto or DeepCopyObject
	// Shared are the fields of the original that change with the copy. Lost are the fields in which the copy differs.
	Shared, Lost []string
	// Panic is the message and the stack of a panic. Missing says why the method could not be called. "" is none.
	Panic, Missing string
}

// attempt is the program's report about one copy method: the original and its copy as JSON, and the original after everything in the
// copy was changed.
type attempt struct {
	Copy
	Original, Copied, After any
}

// paths are the fields in which two objects differ.
func paths(a, b any) (all []string) {
	for _, f := range generate.Compare(a, b) {
		all = append(all, f.Path)
	}
	return all
}

// Probe compiles the program and runs it.
type Probe struct {
	Workspace  string   // the learner's module, which is only read
	Scratch    string   // a folder for the program, and for the home in which it runs
	Supervisor string   // the binary that runs a learner's program and ends its whole process tree
	Env        []string // the whole environment of the go command
}

// Result is the program's report, or a finding with the cause [CauseBuild], [CauseNoAnswer] or [finding.CauseMachine].
type Result struct {
	Copies  Copies           `json:"copies,omitempty"`
	Finding *finding.Finding `json:"finding,omitempty"`
}

// Run compiles the program and runs it. It returns an error only if ctx ends.
func (p Probe) Run(ctx context.Context) (r Result, _ error) {
	program, err := p.build(ctx)
	if err == nil {
		r.Copies, err = p.run(ctx, program)
	}
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		r.Finding = finding.Of(err)
	}
	return r, nil
}

func (p Probe) build(ctx context.Context) (program string, _ error) {
	api, err := p.apiPackage()
	if err != nil {
		return "", err
	}
	dir, overlay, err := p.write(api)
	if err != nil {
		return "", finding.Machine("write a small program", err)
	}
	program = filepath.Join(dir, "probe")
	limited, cancel := context.WithTimeout(ctx, process.BuildLimit)
	defer cancel()
	cmd := process.Tool(limited, p.Workspace, dir, p.Env,
		"go", "build", "-buildvcs=false", process.LinkerFlags, "-overlay="+overlay, "-o", program, "./"+folder)
	cmd.WaitDelay = pipeDelay
	output, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return program, os.Chmod(program, 0o755) // whatever the umask
	case limited.Err() != nil || !errors.As(err, &exited):
		return "", finding.Machine("compile a small program", err)
	}
	return "", finding.New(CauseBuild, "types that compile", "%s", module.Complaint(string(output), p.Workspace))
}

// write writes the program's source, and the overlay file that puts it into the workspace for the go command.
func (p Probe) write(api string) (dir, overlay string, err error) {
	if dir, err = os.MkdirTemp(p.Scratch, "probe-"); err != nil {
		return "", "", err
	}
	var text bytes.Buffer
	err = mainTemplate.Execute(&text, map[string]string{"API": api, "Object": object, "Other": other, "List": list, "Others": others})
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	data, _ := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(p.Workspace, folder, "main.go"): source}})
	return dir, overlay, errors.Join(err, os.Chmod(dir, 0o755), // a user with fewer rights runs the program
		os.WriteFile(source, text.Bytes(), 0o644), os.WriteFile(overlay, data, 0o644))
}

// declares finds the declarations of the learner's kinds.
var declares = regexp.MustCompile(`(?m)^(?:type |\t)(Memcached|MemcachedList) (?:struct|=)`)

// apiPackage is the import path of the package that declares the learner's kinds. If several do, it is the one where Kubebuilder puts
// them.
func (p Probe) apiPackage() (api string, _ error) {
	declared := map[module.Package]string{}
	err := module.Walk(p.Workspace, func(pkg module.Package, text []byte) {
		for _, kind := range declares.FindAllStringSubmatch(string(text), -1) {
			declared[pkg] += kind[1] + " "
		}
		both := strings.Contains(declared[pkg], "Memcached ") && strings.Contains(declared[pkg], "MemcachedList ")
		if both && (api == "" || pkg.Folder == scaffolded) {
			api = pkg.Import
		}
	})
	switch {
	case err != nil:
		return "", finding.New(CauseBuild, "a Go module", "%v", err)
	case api == "":
		return "", finding.New(CauseBuild, "a package with the types Memcached and MemcachedList", "none; %s is the place for it", scaffolded)
	}
	return api, nil
}

// run runs the program as a learner's, and reads its report.
func (p Probe) run(ctx context.Context, program string) (Copies, error) {
	const expected = "a small program that imports your types to start and to end"
	limited, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	home := filepath.Join(filepath.Dir(program), "home")
	report := filepath.Join(home, "report.json")
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}
	err := os.Mkdir(home, 0o755)
	var cmd *exec.Cmd
	if err == nil {
		cmd, err = process.Program(limited, p.Supervisor, home, env, program, report)
	}
	if err != nil {
		return nil, finding.Machine("start a small program", err)
	}
	output := &process.Tail{Limit: 2000}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = output, output, pipeDelay
	ended := cmd.Run()
	switch {
	case limited.Err() != nil:
		return nil, finding.New(CauseNoAnswer, expected, "it was still running after %v; is there a loop in an init function?", runLimit)
	case cmd.ProcessState == nil, cmd.ProcessState.ExitCode() == supervisor.CannotRun:
		return nil, finding.Machine("start a small program", fmt.Errorf("%w: %s", ended, output))
	}
	var reported map[string][]attempt
	data, err := os.ReadFile(report)
	if err != nil || json.Unmarshal(data, &reported) != nil {
		printed := strings.ReplaceAll(strings.TrimSpace(output.String()), p.Workspace+string(filepath.Separator), "")
		return nil, finding.New(CauseNoAnswer, expected, "it ended without an answer (%s); it printed: %s", cmd.ProcessState, printed)
	}
	copies := Copies{}
	for kind, all := range reported {
		for _, a := range all {
			if a.Panic+a.Missing == "" {
				a.Lost, a.Shared = paths(a.Copied, a.Original), paths(a.After, a.Original)
			}
			copies[kind] = append(copies[kind], a.Copy)
		}
	}
	return copies, nil
}
