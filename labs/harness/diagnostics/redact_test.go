package diagnostics_test

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/harness/diagnostics"
)

// jwt has the form of a ServiceAccount's token. Nobody ever issued it.
const jwt = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6eCJ9.c2lnbmF0dXJl-_x"

func TestCredentialsAreLeftOut(t *testing.T) {
	for name, tc := range map[string]struct{ text, secret string }{
		"a header":                   {"> Authorization: Bearer 0123456789abcdef\n", "0123456789abcdef"},
		"a header without a scheme":  {"authorization: hunter2-hunter2", "hunter2"},
		"a bearer token in a text":   {"using bearer abcdefgh12345678 for this", "abcdefgh12345678"},
		"a token":                    {"token is " + jwt + ".", "eyJzdWIi"},
		"a token that was cut off":   {"token is " + jwt[:60], "eyJzdWIi"},
		"a field of a configuration": {`BearerToken:"kdjf83kd9fkd83kf9d8", Impersonate`, "kdjf83kd9fkd83kf9d8"},
		"a kubeconfig":               {"  user:\n    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURQ==\n", "LS0tLS1CRUdJTiB"},
		"a private key":              {"x\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----\ny", "MIIEow"},
		"a private key cut off":      {"-----BEGIN EC PRIVATE KEY-----\nMIIEow\nAAAA", "MIIEow"},
	} {
		got := diagnostics.Redact(tc.text)
		if strings.Contains(got, tc.secret) {
			t.Errorf("%s: %q is still in %q", name, tc.secret, got)
		}
		if !strings.Contains(got, diagnostics.RedactionMark) {
			t.Errorf("%s: nothing says that something was left out: %q", name, got)
		}
	}
}

// What surrounds a credential, and what only talks about one, is what a learner came for.
func TestTheRestStays(t *testing.T) {
	for _, text := range []string{
		`memcacheds.cache.example.com is forbidden: User "system:serviceaccount:lab-system:manager" cannot list resource`,
		`subjectaccessreviews.authorization.k8s.io "x" not found`,
		"invalid character '}' looking for beginning of object key string, unexpected token: }",
		"the bearer of bad news",
		"secret: none",
		"  containers:\n  - image: operator-lab.local/memcached:1.6\n    name: memcached\n",
		"pod-template-hash: 6b7f8c9d5",
	} {
		if got := diagnostics.Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	const header = "GET /x HTTP/1.1\nAuthorization: Bearer abcdefgh12345678\nAccept: */*\n"
	if got := diagnostics.Redact(header); !strings.HasPrefix(got, "GET /x") || !strings.HasSuffix(got, "\nAccept: */*\n") {
		t.Errorf("more than the credential is gone: %q", got)
	}
}
