package cli

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
)

// LabNumber is the number of a lab of the course.
func LabNumber(c *course.Course, text string) (int, error) {
	n, err := strconv.Atoi(text)
	switch _, missing := c.Lab(n); {
	case err != nil:
		return 0, exit.Usage("%q is not the number of a lab: use 1 to %d", text, len(c.Labs))
	case n == 0:
		return 0, exit.Usage("lab 0 has no code: `make lab-0` is all there is, and labs/00-who-did-that/README.md; the others are 1 to %d", len(c.Labs))
	case missing != nil:
		return 0, exit.Usage("%v", missing)
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

// Agree asks whoever sits at the terminal; the end of the input is no yes. Who gave consent in advance, or is a script, reads what it
// was for. otherwise says what has not happened without a yes.
func (a *App) Agree(terminal bool, what, otherwise string) error {
	if a.Consents() || !terminal {
		a.Progress(what)
		return nil
	}
	fmt.Fprint(a.Err, what+" Go on? [y/N] ")
	line, _ := bufio.NewReader(a.In).ReadString('\n')
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line))) {
		return exit.Usage("%s, because the answer was not yes", otherwise)
	}
	return nil
}

// AtTerminal says whether there is somebody to ask.
func (a *App) AtTerminal() bool {
	file, ok := a.In.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
