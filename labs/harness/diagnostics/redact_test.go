package diagnostics_test

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/harness/diagnostics"
)

func TestRedact(t *testing.T) {
	for text, secret := range map[string]string{
		"> Authorization: Bearer 0123456789abcdef\n":                                              "0123456789abcdef",
		"authorization: hunter2-hunter2":                                                          "hunter2",
		"using bearer abcdefgh12345678 for this":                                                  "abcdefgh12345678",
		"token is eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJzeX":                              "eyJ",
		`BearerToken:"kdjf83kd9fkd83kf9d8", Impersonate`:                                          "kdjf83kd9fkd83kf9d8",
		"  user:\n    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURQ==\n":                        "LS0tLS1CRUdJTiB",
		"x\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----\ny":      "MIIEow",
		"-----BEGIN EC PRIVATE KEY-----\nMIIEow\nAAAA":                                            "MIIEow",
		`User "system:serviceaccount:lab-system:manager" cannot list resource`:                    "",
		`subjectaccessreviews.authorization.k8s.io "x" not found`:                                 "",
		"looking for beginning of object key string, unexpected token: }, the bearer of bad news": "",
		"  - image: operator-lab.local/memcached:1.6\n    pod-template-hash: 6b7f8c9d5\n":         "",
	} {
		got := diagnostics.Redact(text)
		if secret == "" && got != text || secret != "" && (strings.Contains(got, secret) || !strings.Contains(got, diagnostics.RedactionMark)) {
			t.Errorf("%q became %q", text, got)
		}
	}
	const header = "GET /x HTTP/1.1\nAuthorization: Bearer abcdefgh12345678\nAccept: */*\n"
	if got := diagnostics.Redact(header); !strings.HasPrefix(got, "GET /x") || !strings.HasSuffix(got, "\nAccept: */*\n") {
		t.Errorf("more than the credential is gone: %q", got)
	}
}
