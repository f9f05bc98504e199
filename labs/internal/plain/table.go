package plain

import (
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

// Width is how many columns of a terminal a text takes: a Korean or Chinese character takes two, an accent none.
func Width(text string) (columns int) {
	for _, r := range norm.NFC.String(text) { // macOS takes a Korean syllable apart
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

// Table writes rows with their columns below each other, two spaces apart.
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
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-Width(cell)+2)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}
