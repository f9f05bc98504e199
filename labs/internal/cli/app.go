// Package cli is what the programs of this checkout share: their flags, the course, the machine's clusters, locks, and how
// a command ends.
package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// App is what every command shares: where things are, and where to write.
type App struct {
	Root  string // the checkout
	State string // .lab below it
	Cache string // see [components.CacheDir]

	In  io.Reader
	Out io.Writer // reports
	Err io.Writer // progress

	Cluster   string // --cluster: one of the constants of this package
	NodeImage string // --node-image, "" = choose
	Yes       bool   // --yes: consent, instead of the questions of Agree

	steps *steps // nil where Err is no terminal
}

// steps are the lines of the last Progress, at the bottom of a terminal.
type steps struct {
	sync.Mutex
	lines int
}

// New finds the checkout that the working directory is in.
func New() (*App, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the checkout: %w", err)
	}
	cache, err := components.CacheDir()
	if err != nil {
		return nil, exit.Usage("%v", err)
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "labs", "course.yaml")); err == nil {
			a := &App{Root: root, State: filepath.Join(root, ".lab"), Cache: cache, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
			if isTerminal(a.Err) {
				a.steps = &steps{}
			}
			return a, nil
		}
		if root == filepath.Dir(root) {
			return nil, exit.Usage("%s is not inside a checkout of operator-lab: cd into it first", dir)
		}
	}
}

// Flags gives root and its commands the flags that all have. Root's PersistentPreRunE checks them. more are further values of --cluster.
func (a *App) Flags(root *cobra.Command, more ...string) {
	known := append([]string{Kind, Embedded, Auto}, more...)
	names, flags := strings.Join(known, ", "), root.PersistentFlags()
	flags.StringVar(&a.Cluster, "cluster", Auto, "kind of cluster: "+names+"; embedded needs no containers, auto is kind where there is an engine")
	flags.StringVar(&a.NodeImage, "node-image", "", "node image to use (default: the locally built one, then kind's own)")
	flags.BoolVar(&a.Yes, "yes", false, "consent to what needs root or minutes")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(known, a.Cluster) {
			return exit.Usage("CLUSTER=%s is not known: use one of %s", a.Cluster, names)
		}
		return nil
	}
}

// Progress says what is going on. On a terminal it takes the place of what it said last, elsewhere it is a line.
func (a *App) Progress(line string) { a.tell(line, true) }

// Notice says what stays true, in lines that stay.
func (a *App) Notice(line string) { a.tell(line, false) }

func (a *App) tell(line string, passes bool) {
	line = strings.TrimSpace(plain.Text(line))
	if a.steps == nil {
		fmt.Fprintln(a.Err, "…", line)
		return
	}
	a.steps.Lock()
	defer a.steps.Unlock()
	if a.steps.lines > 0 {
		fmt.Fprintf(a.Err, "\x1b[%dA\x1b[J", a.steps.lines) // up, and clear what is below
	}
	text := plain.Fold("… ", line)
	fmt.Fprint(a.Err, text)
	if a.steps.lines = 0; passes {
		a.steps.lines = strings.Count(text, "\n")
	}
}

// Settle leaves the last line of Progress where it is: something else is about to be written below it.
func (a *App) Settle() {
	if a.steps != nil {
		a.steps.Lock()
		defer a.steps.Unlock()
		a.steps.lines = 0
	}
}

// Say writes a report, folded.
func (a *App) Say(format string, args ...any) {
	a.Settle()
	fmt.Fprint(a.Out, plain.Fold("", fmt.Sprintf(format, args...)))
}

// Course loads the course. A manifest that cannot be read is wrong usage: somebody has edited it.
func (a *App) Course() (*course.Course, error) {
	c, err := course.Load(a.Root)
	if err != nil {
		return nil, exit.Usage("%v", err)
	}
	return c, nil
}

// Lock keeps two commands from working on one thing at the same time. name is the lock's file in the state folder, which stays; what
// names the thing in errors. The kernel releases the lock when the process ends.
func (a *App) Lock(name, what string) (unlock func(), err error) {
	dir := filepath.Join(a.State, "locks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", what, err)
	}
	lock := flock.New(filepath.Join(dir, name))
	switch ok, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", what, err)
	case !ok:
		return nil, exit.Usage("another lab command is working on %s: wait for it to end", plain.Path(what))
	}
	return func() { _ = lock.Unlock() }, nil
}
