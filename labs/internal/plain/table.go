package plain

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

// Columns is how wide all is that a person reads: the smallest usual terminal has as many.
const Columns = 80

// Width is how many columns of a terminal a text takes: a Korean or Chinese character takes two, an accent or a colour none.
func Width(text string) (columns int) {
	for _, r := range norm.NFC.String(escape.ReplaceAllString(text, "")) { // macOS takes a Korean syllable apart
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			columns += 2
		default:
			columns++
		}
	}
	return columns
}

// words are what may stand on a line of its own. A command in backquotes is one of them.
var words = regexp.MustCompile("(?:`[^`]*(?:`|$)|[^\\s`])+")

// Wrap breaks a paragraph between words into lines of at most n columns. A word that is longer stays whole: it is a path or a
// name, and somebody may want to copy it. All lines are as far from the left as the first one, by half the width at most.
func Wrap(text string, n int) (lines []string) {
	indent := strings.ReplaceAll(text[:len(text)-len(strings.TrimLeft(text, " \t"))], "\t", "    ")
	indent = indent[:min(len(indent), n/2)]
	line := indent
	for _, word := range words.FindAllString(text, -1) {
		switch {
		case line == indent:
			line += word
		case Width(line)+1+Width(word) > n:
			lines, line = append(lines, line), indent+word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// Fold breaks the paragraphs of a text into lines of at most [Columns], each with a line end. The first stands behind head, the
// others stand below its text, in 20 columns at least.
func Fold(head, text string) string {
	var out strings.Builder
	indent := Width(head)
	for paragraph := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		for _, line := range Wrap(strings.TrimSuffix(paragraph, "\n"), max(Columns-indent, 20)) {
			out.WriteString(strings.TrimRight(head+line, " ") + "\n")
			head = strings.Repeat(" ", indent)
		}
	}
	return out.String()
}

// Path names a file or folder as short as a shell understands it here: without the working folder, if it is below that.
func Path(path string) string {
	dir, err := os.Getwd()
	if rel, relErr := filepath.Rel(dir, path); err == nil && relErr == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// Table writes rows with their columns below each other, two spaces apart. What is too wide in the last column goes on below it.
func Table(w io.Writer, rows ...[]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		line, last := "", len(row)-1
		for i, cell := range row[:last] {
			line += cell + strings.Repeat(" ", widths[i]-Width(cell)+2)
		}
		text.WriteString(Fold(line, row[last]))
	}
	_, err := io.WriteString(w, text.String())
	return err
}
