package cli

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
)

// One refuses all but one argument. usage is the command as it should be, without the program.
func One(usage string) cobra.PositionalArgs { return Arguments(1, 1, usage) }

// Arguments refuses fewer arguments than least, and more than most.
func Arguments(least, most int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return exit.Usage("%d arguments: use %s %s", len(args), cmd.Root().Name(), usage)
		}
		return nil
	}
}

// NoArguments refuses all arguments.
func NoArguments(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return exit.Usage("%s takes no arguments, and %q is one", command, args[0])
		}
		return nil
	}
}

// LabNumber is the number of a lab of the course.
func LabNumber(c *course.Course, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, exit.Usage("%q is not the number of a lab: use 1 to %d", text, len(c.Labs))
	}
	if n == 0 {
		return 0, exit.Usage("lab 0 has no code: `make lab-0` is all there is, and labs/00-who-did-that/README.md; the others are 1 to %d", len(c.Labs))
	}
	if _, err := c.Lab(n); err != nil {
		return 0, exit.Usage("%v", err)
	}
	return n, nil
}

// Count is a number of things, such as "1 cluster" and "2 clusters".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Agree asks whoever sits at the terminal. Who gave consent in advance, or is a script, reads what it was for. otherwise
// says what has not happened without a yes.
func (a *App) Agree(terminal bool, what, otherwise string) error {
	if a.Consents() || !terminal {
		a.Progress(what)
		return nil
	}
	if a.Ask(what + " Go on?") {
		return nil
	}
	return exit.Usage("%s, because the answer was not yes", otherwise)
}

// Ask asks whoever sits at the terminal. The end of the input is no yes.
func (a *App) Ask(question string) bool {
	fmt.Fprint(a.Err, question+" [y/N] ")
	line, _ := bufio.NewReader(a.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}

// AtTerminal says whether there is somebody to ask.
func (a *App) AtTerminal() bool {
	file, ok := a.In.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
