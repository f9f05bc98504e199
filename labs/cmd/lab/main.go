// Command lab checks the steps of the Operator Lab. `lab --help` lists what it does; nearly every make target of the
// checkout calls it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/internal/exit"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == embedded.SuperviseCommand {
		os.Exit(supervise(os.Args[2]))
	}
	os.Exit(run(os.Args[1:]))
}

// supervise is what this program is to a cluster of processes: their parent.
func supervise(dir string) int {
	if err := embedded.Supervise(dir); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	return 0
}

func run(args []string) int {
	log.SetLogger(logr.Discard()) // else controller-runtime's client complains that nobody did
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	a, err := newApp()
	if err == nil {
		takeGo(ctx, a.root)
		err = execute(ctx, a, args)
	}
	code := exit.Code(err)
	if ctx.Err() != nil {
		code = exit.Interrupted
	}
	told := errors.Is(err, exit.ErrFail) || errors.Is(err, exit.ErrTold)
	if err != nil && !told && code != exit.Interrupted {
		fmt.Fprintln(os.Stderr, "lab:", err)
	}
	switch {
	case code == exit.Interrupted && told:
		fmt.Fprintln(os.Stderr, "lab: interrupted")
	case code == exit.Interrupted:
		fmt.Fprintln(os.Stderr, "lab: interrupted; "+remains(err))
	}
	return code
}

// remains says what an interrupted command left behind: a cluster, when the engine did not let it go.
func remains(err error) string {
	if p, ok := errors.AsType[*clusters.Problem](err); ok && p.Mend == clusters.MendCluster {
		return p.Finding()
	}
	return "nothing was left behind"
}

// execute runs the command. What cobra refuses before a command begins is wrong usage.
func execute(ctx context.Context, a *app, args []string) error {
	begun := false
	root := newRootCommand(a, func() { begun = true })
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !begun {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return exit.Usage("%s; see lab --help", text)
	}
	return err
}

func newRootCommand(a *app, begin func()) *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "Build a Kubernetes operator in steps, each judged on a fresh cluster",
		Long: `lab judges each step of the Memcached operator that you build in workspace/, on a fresh cluster: kind, or, without a
container engine, an embedded control plane.

Exit codes: 0 pass or done, 1 fail, 2 wrong usage, 3 the machine is at fault, 130 interrupted.`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			begin()
			return a.resolve()
		},
		RunE: func(*cobra.Command, []string) error { return exit.Usage("no command given; see lab --help") },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&a.cluster, "cluster", auto, "kind of cluster: kind, embedded (no containers), auto: kind where there is an engine, or room: lent by the room")
	flags.StringVar(&a.nodeImage, "node-image", "", "node image to use (default: the locally built one, then kind's own)")
	flags.StringVar(&a.workspace, "workspace", filepath.Join(a.root, "workspace"), "folder that you work in")
	flags.BoolVar(&a.yes, "yes", false, "consent to what needs root or minutes")
	root.AddCommand(
		newDemoCommand(a), newCheckCommand(a), newWatchCommand(a), newHintCommand(a), newTraceCommand(a), newDiffCommand(a), newProgressCommand(a),
		newSolveCommand(a), newResetCommand(a), newUndoCommand(a),
		newUpCommand(a), newDownCommand(a), newShellCommand(a), newStatusCommand(a),
		newDoctorCommand(a), newSetupCommand(a), newNodeImageCommand(a), newBoardCommand(a), newClassroomCommand(a), newGradeCommand(a),
		newTestCommand(a), newProofCommand(a), newMutantsCommand(a),
		newVerifyCommand(a), newLintCommand(a), newRenderCommand(a),
	)
	return root
}

// resolve checks the flags that every command shares.
func (a *app) resolve() error {
	if !slices.Contains([]string{auto, onKind, onEmbedded, onRoom}, a.cluster) {
		return exit.Usage("CLUSTER=%s is not known: use kind, embedded, room or auto", a.cluster)
	}
	abs, err := filepath.Abs(a.workspace)
	if err != nil {
		return exit.Usage("WORKSPACE=%s: %v", a.workspace, err)
	}
	a.workspace = target(abs)
	a.yes = a.yes || os.Getenv("CI") != ""
	return nil
}

// target is the path without symbolic links, also where its end does not exist yet: one workspace has one lock and one
// history, and who walks through a folder does not follow a link to it. A path with a link that leads nowhere stays as
// it is; whoever opens the workspace says what is wrong with it.
func target(path string) string {
	for rest, dir := "", path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// progress writes one line about what is going on.
func (a *app) progress(line string) { fmt.Fprintln(a.err, "…", strings.TrimSpace(line)) }
