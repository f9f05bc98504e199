package course_test

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// lint returns the problems of a checkout, one a line.
func lint(t *testing.T, root string) (lines []string) {
	t.Helper()
	problems, err := coursetest.Load(t, root).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		lines = append(lines, p.Error())
	}
	return lines
}

// replace changes a file of a checkout and makes sure that it does.
func replace(t *testing.T, root, file, old, new string) {
	t.Helper()
	text := coursetest.Read(t, root, file)
	if !strings.Contains(text, old) {
		t.Fatalf("%s has no %q", file, old)
	}
	coursetest.Write(t, root, file, strings.Replace(text, old, new, 1))
}

func TestLintFindsOneMistake(t *testing.T) {
	for name, tc := range map[string]struct {
		file, old, new string
		want           string
	}{
		"none": {},
		"a check that the lesson lacks": {file: "labs/02-name/README.md", old: "- `says-name`: it is said.\n",
			want: "labs/02-name/README.md: has the checks [takes-name], and labs/02-name/lab.yaml has [says-name takes-name]"},
		"a check that only the lesson has": {file: "labs/03-shout/README.md", old: "- `shouts`", new: "- `whispers`: quiet.\n- `shouts`",
			want: "labs/03-shout/README.md: has the checks [shouts whispers], and labs/03-shout/lab.yaml has [shouts]"},
		"a check that is not written": {file: "labs/02-name/checks.go", old: `env.Check("takes-name")`,
			want: "labs/02-name/*.go: has the checks [says-name], and labs/02-name/lab.yaml has [says-name takes-name]"},
		"a contract without the card": {file: "labs/03-shout/README.md", old: "[The card](../../docs/contract-card.md)", new: "The card",
			want: `labs/03-shout/README.md: "## The contract" has to link docs/contract-card.md, and to have at most 150 words: it has 5`},
		"a contract that is too long": {file: "labs/03-shout/README.md", old: "- It shouts.", new: strings.Repeat("loud ", 149),
			want: `labs/03-shout/README.md: "## The contract" has to link docs/contract-card.md, and to have at most 150 words: it has 151`},
		"steps out of order": {file: "labs/02-name/README.md", old: "## 1.", new: "## 2.",
			want: "labs/02-name/README.md: step 2 stands where step 1 should"},
		"a hint that tells of a later lab": {file: "labs/01-hello/lab.yaml", old: "  hints:\n", new: "  regions: {other: shout}\n  hints:\n",
			want: `labs/01-hello/lab.yaml: says-hello: regions.other: operator/ has no region "shout" up to lab 1`},
		"a cause without a hint": {file: "labs/01-hello/checks.go", old: "loud", new: "quiet",
			want: `labs/01-hello/checks.go: no check of labs/01-hello/lab.yaml has a hint for the cause "too-quiet"`},
		"a dead link": {file: "labs/01-hello/README.md", old: "../02-name/README.md", new: "../02-naam/README.md#top",
			want: "labs/01-hello/README.md: the link leads nowhere: ../02-naam/README.md"},
		"a broken region": {file: "operator/main.go", old: "// lab:2 end", new: "// lab:1 end",
			want: "operator/main.go:33: lab:1 end  is out of place"},
		"a quote that differs": {file: "labs/02-name/README.md", old: "   \treturn\n", new: "   \tos.Exit(0)\n   \n",
			want: "labs/02-name/README.md: right below <!-- snippet: greet --> there is not the region's code, which is now:\n" +
				"   if len(os.Args) > 1 {\n   \tfmt.Println(\"hello\", os.Args[1])\n   \treturn\n   }\n"},
		"a snippet without code": {file: "README.md", old: "```go\n", new: "\n```go\n",
			want: "README.md: right below <!-- snippet: hello --> there is not the region's code, which is now:\nfmt.Println(\"hello\")\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := coursetest.New(t)
			coursetest.Write(t, root, "labs/01-hello/checks.go", "package hello\n\nvar _ = env.Check(\"says-hello\")\n\nvar x = finding.New(\"too-loud\", 1, 2)\n")
			replace(t, root, "labs/01-hello/lab.yaml", "  hints:\n", "  hints:\n    too-loud: [think]\n")
			coursetest.Write(t, root, "README.md", "# R\n\n[a](https://example.com/x) [b](#here) `[d](gone.md)`\n\n<!-- snippet: hello -->\n"+
				"```go\nfmt.Println(\"hello\")\n```\n")
			if tc.file != "" {
				replace(t, root, tc.file, tc.old, tc.new)
			}
			if got := strings.Join(lint(t, root), "\n"); (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestSnippetIsRegionAtItsLab(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	for id, want := range map[string]string{
		"greet":      "if len(os.Args) > 1 {\n\tfmt.Println(\"hello\", os.Args[1])\n\treturn\n}\n",
		"loud-field": "// Loud asks for shouting.\nLoud bool\n",
		"hello":      "fmt.Println(\"hello\")\n",
		"the-b":      "b: 2\n",
	} {
		if got, err := c.Snippet(id); err != nil || got != want {
			t.Errorf("%s: %q, %v", id, got, err)
		}
	}
}
