package handout

import "testing"

// PowerShell ends a string at typographic quotes as well.
func TestPowerShellStrings(t *testing.T) {
	for text, want := range map[string]string{
		"plain":             "'plain'",
		"a'b":               "'a''b'",
		"$(x) `n \"":        "'$(x) `n \"'",
		"\u2018 \u2019":     "'\u2018\u2018 \u2019\u2019'",
		"\u201a and \u201b": "'\u201a\u201a and \u201b\u201b'",
	} {
		if got := powerShellQuote(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
