// Package doctor finds what on this machine stops a cluster, or makes it fail later, and names the command that fixes
// it. It changes nothing.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/internal/disk"
)

// Severity is how bad a finding is.
type Severity int

// What a finding means.
const (
	Info    Severity = iota // nothing is wrong
	Warning                 // clusters work, and something will fail sooner or later
	Error                   // no cluster can work
)

// Finding is the answer to one question about the machine.
type Finding struct {
	Name     string // the subject, such as "disk"
	Severity Severity
	Detail   string // one line: what was found and, where that is too little, what is enough
	Fix      string // the command that fixes it, "" where there is none
}

// String is one line: the severity, the name, the detail, and the command that fixes it.
func (f Finding) String() string {
	line := fmt.Sprintf("%-8s %-17s %s", [...]string{"ok", "warning", "error"}[f.Severity], f.Name, f.Detail)
	if f.Fix != "" {
		line += "  ->  " + f.Fix
	}
	return line
}

// Options say what to look at. The zero value looks at everything that needs no node image.
type Options struct {
	// Engine is the command of the container engine; "" takes the first of [engine.Names] that answers.
	Engine string
	// NoEngine leaves out all questions about container engines.
	NoEngine bool
	// Dir is a folder whose disk is looked at. "" is the working directory.
	Dir string
	// GoVersion is the oldest Go that is enough, such as "1.26"; "" leaves out Go.
	GoVersion string
	// NodeImage finds a node image on this machine, "" if there is none, and does not pull. stale means that an older
	// version of the build made it. nil leaves out the node image and what is tried in a container of it.
	NodeImage func(ctx context.Context, engine string) (ref string, stale bool, err error)
	// Instead looks at what clusters run on without an engine, whose lack is then a warning. nil means that there is nothing.
	Instead func(context.Context) Finding
	// Commands are those of the program that asks. The zero value has plain instructions.
	Commands Commands
}

// Commands fix what a program fixes itself. An empty one becomes an instruction that needs no program.
type Commands struct {
	Setup     string // starts a container engine, and raises kernel settings
	NodeImage string // makes a node image
	Down      string // deletes clusters that still run
	Instead   string // uses no container engine
}

// Run asks all questions. It leaves out those that depend on what is missing: without an engine there is no node image.
func Run(ctx context.Context, o Options) []Finding {
	r := newRun(o)
	r.ask(ctx)
	return r.findings
}

func (r *run) ask(ctx context.Context) {
	if !r.NoEngine {
		r.checkEngine(ctx)
	}
	if r.engine == "" && r.Instead != nil {
		r.findings = append(r.findings, r.Instead(ctx))
	}
	r.checkDisks(ctx)
	if free, ok := r.freeMemory(); ok {
		// An idle node takes up to 0.55 GB, and the compilation of an operator as much.
		r.checkRoom("memory", r.Commands.Down+", then close other programs", free, 1*giga, 3*giga)
	}
	r.checkGo(ctx)
}

// Disks asks only whether there is room for a run and its compilations. It asks no engine.
func Disks(ctx context.Context, o Options) []Finding {
	r := newRun(o)
	r.checkDisks(ctx)
	return r.findings
}

// Problem is the first error as a *clusters.Problem, nil without one.
func Problem(findings []Finding) error {
	for _, f := range findings {
		if f.Severity == Error {
			return &clusters.Problem{What: f.Name + ": " + f.Detail, Fix: f.Fix}
		}
	}
	return nil
}

// run asks the questions. Tests replace files and free.
type run struct {
	Options
	files    fs.FS                             // the root of the file system
	free     func(path string) (uint64, error) // the free space of a file system
	engine   string                            // the one that answers, "" for none
	findings []Finding
}

func newRun(o Options) *run {
	o.Dir, o.Commands.Down = cmp.Or(o.Dir, "."), cmp.Or(o.Commands.Down, "delete clusters that you do not need")
	return &run{Options: o, files: os.DirFS("/"), free: disk.Free}
}

func (r *run) add(s Severity, name, fix, format string, args ...any) {
	detail, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
	r.findings = append(r.findings, Finding{Name: name, Severity: s, Detail: detail, Fix: fix})
}
