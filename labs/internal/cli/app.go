// Package cli is what the programs of this checkout share: their flags, the course, the machine's clusters, locks, and how
// a command ends.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
			return &App{Root: root, State: filepath.Join(root, ".lab"), Cache: cache, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, nil
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

// Progress writes one line about what is going on.
func (a *App) Progress(line string) { fmt.Fprintln(a.Err, "…", strings.TrimSpace(plain.Text(line))) }

// Course loads the course. A manifest that cannot be read is wrong usage: somebody has edited it.
func (a *App) Course() (*course.Course, error) {
	c, err := course.Load(a.Root)
	if err != nil {
		return nil, exit.Usage("%v", err)
	}
	return c, nil
}

// ErrBusy says that another process has the lock.
var ErrBusy = errors.New("another lab command is working")

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
		return nil, exit.Usage("%w on %s: wait for it to end", ErrBusy, what)
	}
	return func() { _ = lock.Unlock() }, nil
}
