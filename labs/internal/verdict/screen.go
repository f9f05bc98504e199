package verdict

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"
	"golang.org/x/term"

	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// narrowest to widest is how wide a report may be. Wider lines are hard to read, narrower ones leave
	// no room beside the labels.
	narrowest, widest = 40, 110
	// usual is the width where there is no terminal to ask.
	usual = 100
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
	colourless := !terminal || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	paint := func(attributes ...color.Attribute) func(string) string {
		c := color.New(attributes...)
		if c.EnableColor(); colourless {
			c.DisableColor()
		}
		return func(text string) string { return c.Sprint(text) }
	}
	return &screen{
		w: w, width: width(file, terminal),
		bold: paint(color.Bold), faint: paint(color.Faint), green: paint(color.FgGreen), red: paint(color.FgRed),
	}
}

// width is what COLUMNS says, else the terminal.
func width(file *os.File, terminal bool) int {
	n, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || n <= 0 {
		n = usual
		if terminal {
			if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
				n = columns
			}
		}
	}
	return max(narrowest, min(n, widest))
}

// Rule writes a line across the reader's terminal, with a title at its beginning.
func Rule(w io.Writer, title string) {
	s, title := newScreen(w), plain.Line(title)
	const before = "── "
	room := s.width - visible(before) - 2 // a space, and at least some of the line
	if text := []rune(title); len(text) > room {
		title = string(text[:room-1]) + "…"
	}
	head := before + title + " "
	fmt.Fprintln(w, s.faint(head+strings.Repeat("─", s.width-visible(head))))
}

// Note writes a remark beside a report, as a paragraph that fits the reader's terminal.
func Note(w io.Writer, text string) {
	s := newScreen(w)
	s.print("", plain.Text(text), s.faint)
}

// print writes text as one paragraph that begins with head. Its other lines begin below the text. style
// paints the text, nil leaves it as it is.
func (s *screen) print(head, text string, style func(string) string) {
	indent := visible(head)
	for _, line := range wrap(text, s.width-indent) {
		if style != nil {
			line = style(line)
		}
		fmt.Fprintln(s.w, strings.TrimRight(head+line, " "))
		head = strings.Repeat(" ", indent)
	}
}

// line writes a paragraph from the left edge.
func (s *screen) line(text string) { s.print("", text, nil) }

// gap writes an empty line.
func (s *screen) gap() { fmt.Fprintln(s.w) }

// mark writes a paragraph behind a sign.
func (s *screen) mark(sign, text string, style func(string) string) { s.print(sign+" ", text, style) }

const (
	// margin is where the details of a check begin, labels how wide their labels are.
	margin, labels = 4, 10
)

// detail writes paragraphs behind a label, at most n lines of them.
func (s *screen) detail(label, text string, n int) {
	s.beside(strings.Repeat(" ", margin)+s.faint(fmt.Sprintf("%-*s", labels, label)), text, n)
}

// beside writes paragraphs behind a head, at most n lines of them.
func (s *screen) beside(head, text string, n int) {
	indent := visible(head)
	for _, line := range s.fold(text, indent, n) {
		fmt.Fprintln(s.w, strings.TrimRight(head+line, " "))
		head = strings.Repeat(" ", indent)
	}
}

// fold wraps the paragraphs of text beside an indentation, and leaves out what is longer than n lines.
func (s *screen) fold(text string, indent, n int) []string {
	var lines []string
	for paragraph := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, wrap(strings.TrimRight(paragraph, "\n"), s.width-indent)...)
	}
	if len(lines) > n {
		last := []rune(lines[n-1])
		if room := s.width - indent - 2; len(last) > room {
			last = last[:room]
		}
		lines = append(lines[:n-1], string(last)+" …")
	}
	return lines
}

// wrap breaks text between words into lines of at most n characters. A word that is longer stays whole: it
// is a path or a name, and somebody may want to copy it. All lines are as far from the left as the first one, by half the width at most.
func wrap(text string, n int) []string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	indent = strings.ReplaceAll(indent, "\t", "    ")
	indent = indent[:min(len(indent), n/2)]
	var lines []string
	line := indent
	for _, word := range words(text) {
		switch {
		case strings.TrimSpace(line) == "":
			line += word
		case visible(line)+1+visible(word) > n:
			lines, line = append(lines, line), indent+word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// words are what may stand on a line of its own: a command in backquotes is one of them.
func words(text string) []string {
	var all, quoted []string
	for _, word := range strings.Fields(text) {
		inside, changes := len(quoted) > 0, strings.Count(word, "`")%2 == 1
		switch {
		case !inside && !changes:
			all = append(all, word)
		case inside && changes:
			all, quoted = append(all, strings.Join(append(quoted, word), " ")), nil
		default:
			quoted = append(quoted, word)
		}
	}
	if len(quoted) > 0 { // the second backquote is missing
		all = append(all, strings.Join(quoted, " "))
	}
	return all
}

// painting is what colours add to a text.
var painting = regexp.MustCompile("\x1b\\[[0-9;]*m")

// visible is how many characters of text are seen.
func visible(text string) int { return utf8.RuneCountInString(painting.ReplaceAllString(text, "")) }
