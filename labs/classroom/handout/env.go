package handout

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/example/operator-lab/labs/classroom/modules"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// variable is one that the scripts set.
type variable struct{ Name, Value string }

func (h *Handout) checkEnv() error {
	for _, v := range h.variables() {
		if !utf8.ValidString(v.Value) || strings.ContainsFunc(v.Value, unicode.IsControl) {
			return exit.Usage("the value of %s for %s is no line of text", v.Name, h.Learner.ID)
		}
	}
	return nil
}

// variables are those whose values are known here; paths of the handout are found by the scripts.
func (h *Handout) variables() (set []variable) {
	if h.Modules != "" {
		for _, entry := range modules.Env(h.Modules) {
			name, value, _ := strings.Cut(entry, "=")
			set = append(set, variable{name, value})
		}
	}
	return set
}

// shellQuote makes one word of a text for a POSIX shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// powerShellQuote makes a string of a text for PowerShell, which takes five characters for a single quote.
func powerShellQuote(text string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range text {
		if strings.ContainsRune("'\u2018\u2019\u201a\u201b", r) {
			b.WriteRune(r)
		}
		b.WriteRune(r)
	}
	b.WriteByte('\'')
	return b.String()
}

// markdownEscape is a text that Markdown shows as it is: no emphasis, no link, no HTML.
func markdownEscape(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_[]<>&#|~!:@", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
