package verdict

import (
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"

	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// noLimit is for a text of which all lines are shown.
	noLimit = 1 << 10
	// margin is where the details of a check begin.
	margin = "    "
)

// screen writes lines of at most [plain.Columns], with colours where they are shown.
type screen struct {
	w                       io.Writer
	bold, faint, green, red func(string) string
}

func newScreen(w io.Writer) *screen {
	paint := func(attribute color.Attribute) func(string) string {
		return func(text string) string { return color.New(attribute).Sprint(text) }
	}
	return &screen{
		w: w, bold: paint(color.Bold), faint: paint(color.Faint), green: paint(color.FgGreen), red: paint(color.FgRed),
	}
}

// Rule writes a title that separates what follows.
func Rule(w io.Writer, title string) {
	fmt.Fprintln(w, newScreen(w).faint("── "+plain.Line(title)+" ──"))
}

// print writes paragraphs that begin with head, at most n lines of them. Their other lines begin below the text. style paints
// the text, nil leaves it as it is.
func (s *screen) print(head, text string, style func(string) string, n int) {
	indent := plain.Width(head)
	for _, line := range s.fold(text, indent, n) {
		if style != nil {
			line = style(line)
		}
		fmt.Fprintln(s.w, strings.TrimRight(head+line, " "))
		head = strings.Repeat(" ", indent)
	}
}

// line writes a paragraph from the left edge.
func (s *screen) line(format string, args ...any) {
	s.print("", fmt.Sprintf(format, args...), nil, noLimit)
}

// gap writes an empty line.
func (s *screen) gap() { fmt.Fprintln(s.w) }

// mark writes a paragraph behind a sign.
func (s *screen) mark(sign, text string, style func(string) string) {
	s.print(sign+" ", text, style, noLimit)
}

// detail writes paragraphs behind a label, at most n lines of them.
func (s *screen) detail(label, text string, n int) {
	s.print(margin+s.faint(fmt.Sprintf("%-10s", label)), text, nil, n)
}

// fold wraps the paragraphs of text beside an indentation, and leaves out what is longer than n lines.
func (s *screen) fold(text string, indent, n int) (lines []string) {
	for paragraph := range strings.Lines(strings.Trim(text, " \n")) {
		lines = append(lines, plain.Wrap(strings.TrimRight(paragraph, "\n"), plain.Columns-indent)...)
	}
	if len(lines) > n {
		last := []rune(lines[n-1])
		lines = append(lines[:n-1], string(last[:min(len(last), plain.Columns-indent-2)])+" …")
	}
	return lines
}
