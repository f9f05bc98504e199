package inbox

import (
	"regexp"
	"strings"
	"unicode"
)

// sequences move cursors, set titles and colours, and answer for the person at the terminal.
var sequences = regexp.MustCompile("(?s)(\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]?|(\x1b[]PX^_]|[\u009d\u0090\u0098\u009e\u009f]).*?(\x07|\x1b\\\\|\u009c|$)|\x1b.?")

// plain is text that a terminal shows and does not obey: lines of characters that can be seen. The board takes nothing
// else, but a learner need not believe whatever answers at its address.
func plain(text string) string {
	text = sequences.ReplaceAllString(strings.ToValidUTF8(text, "\ufffd"), "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			return r
		case r == '\t':
			return ' '
		}
		return -1
	}, text))
}
