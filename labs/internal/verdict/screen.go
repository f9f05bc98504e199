package verdict

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/fatih/color"
	"golang.org/x/term"

	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// narrowest and widest are how wide a report may be; usual is its width where there is no terminal to ask.
	narrowest, usual, widest = 40, 100, 110
	// noLimit is for a text of which all lines are shown.
	noLimit = 1 << 10
	// margin is where the details of a check begin.
	margin = "    "
)

// screen writes lines that fit the reader's terminal: wrapped, and with colours where they are shown.
type screen struct {
	w                       io.Writer
	width                   int
	bold, faint, green, red func(string) string
}

func newScreen(w io.Writer) *screen {
	file, _ := w.(*os.File)
	terminal := file != nil && term.IsTerminal(int(file.Fd()))
	width, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || width <= 0 {
		width = usual
		if terminal {
			width, _, _ = term.GetSize(int(file.Fd()))
		}
	}
	paint := func(attribute color.Attribute) func(string) string {
		c := color.New(attribute)
		if c.DisableColor(); terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
			c.EnableColor()
		}
		return func(text string) string { return c.Sprint(text) }
	}
	return &screen{
		w: w, width: max(narrowest, min(width, widest)),
		bold: paint(color.Bold), faint: paint(color.Faint), green: paint(color.FgGreen), red: paint(color.FgRed),
	}
}

// Rule writes a line across the reader's terminal, with a title at its beginning.
func Rule(w io.Writer, title string) {
	s := newScreen(w)
	const before = "── "
	head := before + s.fold(plain.Line(title), len([]rune(before))+2, 1)[0] + " "
	fmt.Fprintln(w, s.faint(head+strings.Repeat("─", max(1, s.width-visible(head)))))
}

// Note writes a remark beside a report, as a paragraph that fits the reader's terminal.
func Note(w io.Writer, text string) {
	s := newScreen(w)
	s.print("", plain.Text(text), s.faint, noLimit)
}

// print writes paragraphs that begin with head, at most n lines of them. Their other lines begin below the text. style paints
// the text, nil leaves it as it is.
func (s *screen) print(head, text string, style func(string) string, n int) {
	indent := visible(head)
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
		lines = append(lines, wrap(strings.TrimRight(paragraph, "\n"), s.width-indent)...)
	}
	if len(lines) > n {
		last := []rune(lines[n-1])
		lines = append(lines[:n-1], string(last[:min(len(last), s.width-indent-2)])+" …")
	}
	return lines
}

// words are what may stand on a line of its own. A command in backquotes is one of them.
var words = regexp.MustCompile("(?:`[^`]*(?:`|$)|[^\\s`])+")

// wrap breaks text between words into lines of at most n characters. A word that is longer stays whole: it is a path or a
// name, and somebody may want to copy it. All lines are as far from the left as the first one, by half the width at most.
func wrap(text string, n int) (lines []string) {
	indent := strings.ReplaceAll(text[:len(text)-len(strings.TrimLeft(text, " \t"))], "\t", "    ")
	indent = indent[:min(len(indent), n/2)]
	line := indent
	for _, word := range words.FindAllString(text, -1) {
		switch {
		case line == indent:
			line += word
		case visible(line)+1+visible(word) > n:
			lines, line = append(lines, line), indent+word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// painting is an escape sequence that colours a text.
var painting = regexp.MustCompile("\x1b\\[[0-9;]*m")

// visible is how many columns of a terminal a text takes.
func visible(text string) int { return plain.Width(painting.ReplaceAllString(text, "")) }
