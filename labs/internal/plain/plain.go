// Package plain makes text from elsewhere safe for a terminal: what a learner's program prints, what a server answers, the
// names and contents of files. Such text can move the cursor, set the clipboard, or show a line in another order. [ReadFile]
// reads files from elsewhere.
//
// Clean a text where it is printed, or where it is stored for printing. The tests called TestTextFromElsewhereIsPlain list
// these places.
package plain

import (
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape is an escape sequence of a terminal: CSI, one with a text such as OSC, or a short one. A text has to end in its
// line: a sequence without an end must not hide what follows.
var escape = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// Text is text without escape sequences. U+FFFD replaces what is invisible or no UTF-8: control characters, and characters
// that change the direction of writing. Line breaks and tabs stay.
func Text(text string) string {
	return visible(strings.ReplaceAll(escape.ReplaceAllString(text, ""), "\r\n", "\n"))
}

// Line is the same in one line, with a space for each run of spaces, tabs and line breaks.
func Line(text string) string {
	return visible(strings.Join(strings.Fields(escape.ReplaceAllString(text, "")), " "))
}

// Short is [Line] with at most limit characters. A longer one has "…" in place of its middle: an error begins with what it
// is about, quotes that at length, and ends with the reason.
func Short(text string, limit int) string {
	line := []rune(Line(text))
	if len(line) > limit {
		head := limit * 2 / 3
		return string(line[:head]) + "…" + string(line[len(line)-(limit-1-head):])
	}
	return string(line)
}

func visible(text string) string {
	return strings.Map(func(r rune) rune { // invalid UTF-8 arrives as utf8.RuneError
		switch r {
		case '\n', '\t', '\u200c', '\u200d': // the joiners are part of words, and of emoji
			return r
		}
		if !unicode.IsGraphic(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// Within applies [Text] to every string that v leads to, by pointers, slices and exported fields.
func Within(v any) { within(reflect.ValueOf(v)) }

func within(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		within(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			within(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				within(field)
			}
		}
	case reflect.String:
		v.SetString(Text(v.String()))
	default: // has no text
	}
}

// Cell is text that no spreadsheet takes for a formula.
func Cell(text string) string {
	// Where lists have semicolons, a spreadsheet begins a cell there; a text with a comma is quoted.
	text = strings.ReplaceAll(text, ";", ",")
	// Spreadsheets of East Asia take the wide letters for the others.
	if first, _ := utf8.DecodeRuneInString(text); strings.ContainsRune("=+-@\t\r＝＋－＠", first) {
		return "'" + text
	}
	return text
}
