// Package doctor looks for what on this machine would stop a lab cluster, or
// make it fail later in a way that nobody would understand, and names the
// command that fixes it. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/example/operator-lab/clusters"
)

// Severity says what a finding that is not OK means.
type Severity string

const (
	// Stops means that no lab could run.
	Stops Severity = "stops"
	// Warns means that labs run, but something will fail sooner or later.
	Warns Severity = "warns"
	// Tells means that nothing is wrong, and it is good to know when something else is.
	Tells Severity = "tells"
)

// Finding is the answer to one question about the machine.
type Finding struct {
	// Name is what was looked at, such as "disk".
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Severity is what it means when OK is false.
	Severity Severity `json:"severity"`
	// Detail is one line: what was seen and, if that is not enough, what would be.
	Detail string `json:"detail"`
	// Fix is the command that fixes it, "" when there is nothing to fix or no
	// command that could.
	Fix string `json:"fix,omitempty"`
}

// Options say what to look at. The zero value looks at everything that needs
// neither a checkout nor a node image.
type Options struct {
	// Engine is the container engine; "" takes the first that answers.
	Engine string
	// Root is the checkout, where the state goes. "" means the working directory.
	Root string
	// GoVersion is the oldest Go that will do, such as "1.26"; "" asks for none.
	GoVersion string
	// NodeImage finds a node image that is on this machine; the zero Image says that
	// there is none. It must not pull. nil leaves out the node image and everything
	// that is tried in a container of it.
	NodeImage func(ctx context.Context, engine string) (Image, error)
	// Pullable is the image that could be pulled where there is no other, by its
	// full name. "" means that pulling is no way out.
	Pullable string
	// NoEngine leaves out everything about container engines, because none is wanted.
	NoEngine bool
	// Embedded tells which programs of the embedded control plane have yet to be built.
	// With it, a machine without an engine can run labs all the same. nil leaves it out.
	Embedded func(ctx context.Context) (missing []string, err error)
}

// Image is a node image.
type Image struct {
	// Ref is what the engine calls it.
	Ref string
	// Stale says that it was built from an older recipe than the checkout's.
	Stale bool
}

// Run answers all questions. What depends on another answer is left out when
// that is bad: without an engine there is no node image.
func Run(ctx context.Context, o Options) []Finding {
	return examine(ctx, o, thisMachine())
}

// Disks answers only whether there is room for a run and its compilations. It asks
// neither the engine nor the network, so it takes no time.
func Disks(ctx context.Context, o Options) []Finding {
	e := &examination{Options: o.withDefaults(), machine: thisMachine()}
	e.checkDisks(ctx)
	return e.findings
}

func (o Options) withDefaults() Options {
	if o.Root == "" {
		o.Root = "."
	}
	return o
}

func examine(ctx context.Context, o Options, m machine) []Finding {
	e := &examination{Options: o.withDefaults(), machine: m}
	if !e.NoEngine {
		e.findEngine(ctx)
	}
	if e.engine != "" {
		e.checkEngine(ctx)
		e.checkNodeImage(ctx)
	} else {
		e.checkEmbedded(ctx)
	}
	if !e.NoEngine {
		e.checkKernel()
	}
	e.checkRoom(ctx)
	e.checkTools(ctx)
	e.checkClock()
	return e.findings
}

// examination is one run.
type examination struct {
	Options
	machine
	findings []Finding

	// engine is the one that answers, "" if none does.
	engine string
	// local says that the engine's kernel is this machine's.
	local bool
	// image is a node image on this machine, "" if there is none.
	image string
	// inside is what a container of the node image saw, nil if none ran.
	inside *inside
}

func (e *examination) ok(name, format string, args ...any) {
	e.findings = append(e.findings, Finding{Name: name, OK: true, Severity: Tells, Detail: fmt.Sprintf(format, args...)})
}

func (e *examination) bad(s Severity, name, fix, format string, args ...any) {
	// A finding of the severity Tells is OK.
	e.findings = append(e.findings, Finding{
		Name: name, OK: s == Tells, Severity: s, Detail: fmt.Sprintf(format, args...), Fix: fix,
	})
}

// Problem is nil when a lab could run, and otherwise a *clusters.Problem that
// names all findings that would stop it, and the command that fixes the first.
func Problem(findings []Finding) error {
	var names []string
	fix := ""
	for _, f := range findings {
		if f.OK || f.Severity != Stops {
			continue
		}
		names = append(names, f.Name)
		if fix == "" {
			fix = f.Fix
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &clusters.Problem{What: "this machine is not ready yet: see " + strings.Join(names, ", "), Fix: fix}
}

// Worst is the finding that explains best why a lab failed: the first that stops labs,
// else the first that warns. ok is false when nothing is wrong.
func Worst(findings []Finding) (worst Finding, ok bool) {
	for _, severity := range []Severity{Stops, Warns} {
		for _, f := range findings {
			if !f.OK && f.Severity == severity {
				return f, true
			}
		}
	}
	return Finding{}, false
}

// String is one line: a mark, the name, the detail, and the command that fixes
// it.
func (f Finding) String() string {
	mark := "ok"
	if !f.OK {
		mark = map[Severity]string{Stops: "STOPS", Warns: "warns"}[f.Severity]
	}
	line := fmt.Sprintf("%-6s %-18s %s", mark, f.Name, f.Detail)
	if f.Fix != "" {
		line += "  ->  " + f.Fix
	}
	return line
}
