package diagnostics

import (
	"regexp"

	"github.com/example/operator-lab/labs/internal/plain"
)

// RedactionMark replaces a credential.
const RedactionMark = "[left out]"

// redactions are applied in order, the most specific patterns first. The groups of each pattern stay.
var redactions = []struct {
	pattern *regexp.Regexp
	with    string
}{
	// A private key, also where its line breaks were escaped.
	{regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), "${1}" + RedactionMark + "${2}"},
	// A header, as in HTTP, in Go's output or in JSON, with or without a scheme.
	{regexp.MustCompile(`(?i)(authorization["']?\s*[:=]\s*[\["']*)(?:(?:basic|bearer|digest|negotiate)\s+)?[^\s"',\]}]+`),
		"${1}" + RedactionMark},
	{regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + RedactionMark},
	// A signed token, and the beginning of one that was cut off.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,2}`), RedactionMark},
	// The fields of kubeconfigs and of Secrets that were printed. Short values are words, not secrets.
	{regexp.MustCompile(`(?i)((?:token|password|secret|client-key-data|clientkeydata)["']?\s*[:=]\s*["']?)[A-Za-z0-9._~+/=-]{16,}`),
		"${1}" + RedactionMark},
}

// Redact makes text safe for a terminal, and replaces what looks like a credential: Authorization headers, bearer tokens,
// JSON web tokens, private keys. Credentials in other forms stay.
func Redact(text string) string {
	text = plain.Text(text) // first: an escape sequence inside a token must not hide it
	for _, r := range redactions {
		text = r.pattern.ReplaceAllString(text, r.with)
	}
	return text
}
