// Package plain makes text from elsewhere safe for a terminal: what a learner's program prints, what a server answers, the
// names and contents of files. Such text can move the cursor, set the clipboard, or show a line in another order.
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
	text = strings.ReplaceAll(escape.ReplaceAllString(text, ""), "\r\n", "\n")
	return strings.Map(func(r rune) rune { // invalid UTF-8 arrives as utf8.RuneError
		if strings.ContainsRune("\n\t\u200c\u200d", r) || unicode.IsGraphic(r) { // the joiners are part of words, and of emoji
			return r
		}
		return utf8.RuneError
	}, text)
}

// Line is the same in one line, with a space for each run of spaces, tabs and line breaks.
func Line(text string) string {
	return Text(strings.Join(strings.Fields(escape.ReplaceAllString(text, "")), " "))
}

// Short is [Line] with at most limit characters. A longer one has "…" in place of its middle: an error begins with what it
// is about, quotes that at length, and ends with the reason.
func Short(text string, limit int) string {
	line := []rune(Line(text))
	if len(line) <= limit {
		return string(line)
	}
	head := limit * 2 / 3
	return string(line[:head]) + "…" + string(line[len(line)-(limit-1-head):])
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
			if v.Field(i).CanSet() {
				within(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString(Text(v.String()))
	default: // has no text
	}
}
