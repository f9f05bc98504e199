package diagnostics

import (
	"regexp"

	"github.com/example/operator-lab/labs/internal/plain"
)

// RedactionMark stands where a credential stood.
const RedactionMark = "[left out]"

// redactions are applied in order, the ones that know most about the form of a secret first. The groups of each pattern stay.
var redactions = []struct {
	pattern *regexp.Regexp
	with    string
}{
	// A private key, also where its line breaks were escaped.
	{regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), "${1}" + RedactionMark + "${2}"},
	// A header, as HTTP writes it, as Go prints it, or as JSON: with its scheme, or without one.
	{regexp.MustCompile(`(?i)(authorization["']?\s*[:=]\s*[\["']*)(?:(?:basic|bearer|digest|negotiate)\s+)?[^\s"',\]}]+`), "${1}" + RedactionMark},
	{regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + RedactionMark},
	// A signed token, and the beginning of one that was cut off.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,2}`), RedactionMark},
	// The fields of kubeconfigs and of Secrets that were printed. Short values are words, not secrets.
	{regexp.MustCompile(`(?i)((?:token|password|secret|client-key-data|clientkeydata)["']?\s*[:=]\s*["']?)[A-Za-z0-9._~+/=-]{16,}`), "${1}" + RedactionMark},
}

// Redact is text that is safe for a terminal, without what looks like a credential: Authorization headers, bearer tokens,
// JSON web tokens, private keys. It is meant for text that people keep, paste and send around; what no rule knows stays.
func Redact(text string) string {
	text = plain.Text(text) // first: an escape sequence inside a token must not hide it
	for _, r := range redactions {
		text = r.pattern.ReplaceAllString(text, r.with)
	}
	return text
}
