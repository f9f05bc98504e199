// Package plaintest tries places where text from elsewhere is printed, or stored for printing.
package plaintest

import (
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// Hostile is a text from elsewhere: a title for the terminal's window, a colour, another direction of writing, a line
	// that is written over, NUL, and a byte that is no UTF-8.
	Hostile = "mark\x1b]0;owned\x07\x1b[31m\u202e\r\x00\xff end"
	// Name is what of it the name of a file can have.
	Name = "mark\x1b]0;owned\x07\x1b[31m\u202e\r end"
)

// Places are functions by the name of a place. Each sends [Hostile] there, and returns what is printed or stored.
type Places map[string]func(t *testing.T) string

// Check fails for each place that lets something of [Hostile] through.
func Check(t *testing.T, places Places) {
	for name, sent := range places {
		t.Run(name, func(t *testing.T) {
			got := sent(t)
			if !strings.Contains(got, "mark") {
				t.Fatalf("the text did not get there: %q", got)
			}
			if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\x07\u202e\r\x00") {
				t.Errorf("not safe for a terminal: %q", got)
			}
		})
	}
}
