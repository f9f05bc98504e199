package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/fix"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Main runs the program with the root command, and returns its exit code.
func Main(root func(*App) *cobra.Command) int {
	log.SetLogger(logr.Discard()) // else controller-runtime's client complains that nobody did
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	a, err := New()
	if err != nil {
		complain(err)
		return exit.Code(err)
	}
	takeGo(ctx, a.Root)
	err = Execute(ctx, root(a), os.Args[1:])
	code := exit.Code(err)
	if ctx.Err() != nil {
		code = exit.Interrupted
	}
	if code == exit.Interrupted {
		complain(errors.New("interrupted; " + remains(err)))
	} else if err != nil && !errors.Is(err, exit.ErrFail) && !errors.Is(err, exit.ErrTold) {
		complain(err)
	}
	return code
}

// takeGo has this program, and all that it starts, use the Go that the checkout's go.mod names. An older Go fetches that one by
// itself (https://go.dev/doc/toolchain), but only where a go.mod names it: a learner's module with an older go line would be compiled
// by the older Go. With the settings removed here, which somebody exported for other work, Go would build for another machine, or not at all.
func takeGo(ctx context.Context, root string) {
	for _, name := range []string{"GOOS", "GOARCH", "GOEXPERIMENT", "GO111MODULE", "GOROOT"} {
		_ = os.Unsetenv(name)
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT")
	cmd.Dir = root
	out, _ := cmd.Output() // without Go, the first command that needs it says so
	if goroot := strings.TrimSpace(string(out)); filepath.IsAbs(goroot) {
		_ = os.Setenv("PATH", filepath.Join(goroot, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
}

// complain prints an error, which may quote other programs, and what fixes it.
func complain(err error) {
	text := err.Error()
	if p, ok := errors.AsType[*clusters.Problem](err); ok && p.Fix == "" {
		text += " (fix: " + fix.Command(p) + ")"
	}
	head, text := filepath.Base(os.Args[0])+": ", plain.Text(text)
	if isTerminal(os.Stderr) { // a program reads one line
		fmt.Fprint(os.Stderr, plain.Fold(head, text))
	} else {
		fmt.Fprintln(os.Stderr, head+text)
	}
}

// remains says what an interrupted command left behind: a cluster, when the engine did not delete it.
func remains(err error) string {
	if p, ok := errors.AsType[*clusters.Problem](err); ok && errors.Is(p, clusters.ErrBroken) {
		return p.Finding()
	}
	return "nothing was left behind"
}

// Told is what a command returns after it has printed a verdict.
func Told(v verdict.Verdict) error {
	return map[verdict.Verdict]error{verdict.Fail: exit.ErrFail, verdict.Environment: exit.ErrTold}[v]
}

// sourceLine is the end of a line within a paragraph of the source.
var sourceLine = regexp.MustCompile(`([^\n])\n([^\n])`)

// Execute runs the command that the arguments name. An error of cobra before the command begins is wrong usage.
func Execute(ctx context.Context, root *cobra.Command, args []string) error {
	begun, resolve := false, root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		begun = true
		return resolve(cmd, args)
	}
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", plain.Columns)))
	for _, cmd := range append(root.Commands(), root) {
		cmd.Long = plain.Fold("", sourceLine.ReplaceAllString(cmd.Long, "$1 $2"))
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !begun {
		text, _, _ := strings.Cut(err.Error(), "\n")
		if cmd != root {
			text += ": use " + strings.TrimSuffix(cmd.UseLine(), " [flags]")
		}
		return exit.Usage("%s; see %s --help", text, root.Name())
	}
	return err
}
