package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// Command is a command that runs run. The first line of text is its summary.
func Command(use, text string, args cobra.PositionalArgs, run func(ctx context.Context, args []string) error) *cobra.Command {
	short, _, _ := strings.Cut(text, "\n")
	return &cobra.Command{
		Use: use, Short: short, Long: text, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args) },
	}
}

// LabNumber is the number of a lab of the course.
func LabNumber(c *course.Course, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(c.Labs) {
		return 0, exit.Usage("%q is not a lab with code: use 1 to %d", text, len(c.Labs))
	}
	return n, nil
}

// Count is a number with its noun, such as "1 cluster" and "2 clusters".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Agree says what a command is about to do, and asks a person at the terminal whether to go on. Only y and yes agree. A script agrees
// with --yes.
func (a *App) Agree(what string) bool {
	a.Settle()
	fmt.Fprint(a.Err, plain.Fold("", what))
	if a.Yes || !a.AtTerminal() {
		return a.Yes
	}
	fmt.Fprint(a.Err, "Go on? [y/N] ")
	line, _ := bufio.NewReader(a.In).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line)))
}

// AtTerminal says whether there is somebody to ask.
func (a *App) AtTerminal() bool { return isTerminal(a.In) }

// isTerminal says whether a person is at the other end.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
