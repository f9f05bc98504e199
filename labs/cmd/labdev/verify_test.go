package main

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// A mistake is found on the platform that has it, wherever in the module it is.
func TestTypeErrorsOfAPlatform(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                  "module example.org/m\n\ngo 1.26\n",
		"cmd/main.go":             "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.org/m/inner\"\n)\n\nfunc main() { fmt.Println(inner.Name()) }\n",
		"inner/inner.go":          "package inner\n",
		"inner/inner_linux.go":    "package inner\n\nfunc Name() string { return \"linux\" }\n",
		"inner/inner_freebsd.go":  "package inner\n\nfunc Name() string { return 7 }\n",
		"inner/outer/no_error.go": "package outer\n\nvar broken int = \"nobody imports it\"\n",
	} {
		coursetest.Write(t, dir, name, text)
	}
	for platform, want := range map[string]string{
		"linux/amd64": "", "freebsd/amd64": "inner_freebsd.go:3:29: cannot use 7", "darwin/arm64": "undefined: inner.Name",
	} {
		complaints, err := typeErrors(t.Context(), dir, platform, []string{"./cmd"})
		got := strings.Join(complaints, "\n")
		if err != nil || !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, %v; want %q", platform, got, err, want)
		}
	}
}
