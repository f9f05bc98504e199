package course_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// lint returns the problems of a checkout, one a line.
func lint(t *testing.T, root string, suite course.Suite) []string {
	t.Helper()
	problems, err := coursetest.Load(t, root).Lint(suite)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
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

func TestLintFindsNothingWrongWithTheSmallCourse(t *testing.T) {
	suite := course.Suite{1: {"says-hello"}, 2: {"says-name", "takes-name"}, 3: {"shouts"}}
	if problems := lint(t, coursetest.New(t), suite); problems != nil {
		t.Errorf("%q", problems)
	}
}

// A cause without a hint would show learners the hint of "other".
func TestLintFindsCausesWithoutAHint(t *testing.T) {
	root := coursetest.New(t)
	coursetest.Write(t, root, "labs/01-hello/checks.go", `package hello

var one, two = finding.New("other", "", ""), match.Exist().Because("too-quiet")
`)
	want := []string{`labs/01-hello/checks.go:3: no check of labs/01-hello/lab.yaml has a hint for the cause "too-quiet"`}
	if diff := cmp.Diff(want, lint(t, root, nil)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestLintComparesLessonsManifestsAndSuite(t *testing.T) {
	for name, tc := range map[string]struct {
		file, old, new string
		suite          course.Suite
		want           []string
	}{
		"a check that the lesson does not ask for": {
			file: "labs/02-name/README.md", old: "- `says-name`: it is said.\n",
			want: []string{"labs/02-name/README.md: the lesson's list of what is checked does not have the check says-name of labs/02-name/lab.yaml"},
		},
		"a check that only the lesson has": {
			file: "labs/03-shout/README.md", old: "- `shouts`", new: "- `whispers`: quiet.\n- `shouts`",
			want: []string{"labs/03-shout/README.md: the lesson's list of what is checked has a check whispers that labs/03-shout/lab.yaml does not have"},
		},
		"a check twice": {
			file: "labs/03-shout/README.md", old: "- `shouts`", new: "- `shouts`: loud.\n- `shouts`",
			want: []string{"labs/03-shout/README.md: the lesson's list of what is checked has the check shouts twice"},
		},
		"no list of checks": {
			file: "labs/03-shout/README.md", old: "## What is checked", new: "## Checks",
			want: []string{"labs/03-shout/README.md: the lesson's list of what is checked does not have the check shouts of labs/03-shout/lab.yaml"},
		},
		"a hint that tells of a later lab": {
			file: "labs/01-hello/lab.yaml", old: "  hints:\n", new: "  regions: {other: shout}\n  hints:\n",
			want: []string{`labs/01-hello/lab.yaml: says-hello: regions.other: operator/ has no region "shout" up to lab 1`},
		},
		"a suite without a check": {
			suite: course.Suite{1: {"says-hello"}, 2: {"says-name"}, 3: {"shouts"}},
			want:  []string{"labs/02-name/checks.go: the suite does not have the check takes-name of labs/02-name/lab.yaml"},
		},
		"a check in another lab": {
			suite: course.Suite{1: {"says-hello"}, 2: {"says-name", "takes-name", "shouts"}},
			want: []string{
				"labs/02-name/checks.go: the suite has a check shouts that labs/02-name/lab.yaml does not have",
				"labs/03-shout/checks.go: the suite does not have the check shouts of labs/03-shout/lab.yaml",
			},
		},
		"a dead link": {
			file: "labs/01-hello/README.md", old: "../02-name/README.md", new: "../02-naam/README.md#top",
			want: []string{"labs/01-hello/README.md:3: the link leads nowhere: ../02-naam/README.md#top"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := coursetest.New(t)
			if tc.file != "" {
				replace(t, root, tc.file, tc.old, tc.new)
			}
			if diff := cmp.Diff(tc.want, lint(t, root, tc.suite)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLintLeavesOtherLinksAlone(t *testing.T) {
	root := coursetest.New(t)
	coursetest.Write(t, root, "README.md", "# R\n\n[a](https://example.com/x) [b](#here) [c](docs/contract-card.md#lab-1 \"title\") `[d](gone.md)`\n"+
		"[e](<docs/contract-card.md>)\n\n```md\n[f](gone.md)\n```\n")
	if problems := lint(t, root, nil); problems != nil {
		t.Errorf("%q", problems)
	}
}

func TestLintFindsStaleConfig(t *testing.T) {
	root := coursetest.New(t)
	replace(t, root, "labs/course.yaml", "docs/", "dosc/")
	replace(t, root, "labs/course.yaml", "config/made.yaml", "config/mad.yaml")
	want := []string{
		`labs/course.yaml: from.3[0]: operator/ has nothing like "dosc/"`,
		`labs/course.yaml: generated[1].path: operator/ has no "config/mad.yaml": bin/lab verify --fix generates it`,
	}
	if diff := cmp.Diff(want, lint(t, root, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestLintMissesTheTodoOfALab(t *testing.T) {
	root := coursetest.New(t)
	replace(t, root, "operator/main.go", "begin loud-field Add the field Loud.", "begin loud-field")
	want := []string{`labs/03-shout: the starter has no "TODO(lab 3): ": no region of lab 3 has a text`}
	if diff := cmp.Diff(want, lint(t, root, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestLintNamesEveryBrokenRegion(t *testing.T) {
	root := coursetest.New(t)
	coursetest.Write(t, root, "operator/a.yaml", "# lab:9 begin x\n")
	coursetest.Write(t, root, "operator/b.yaml", "# lab:1 end\n")
	if problems := lint(t, root, nil); len(problems) != 2 {
		t.Errorf("%q", problems)
	}
}

func TestQuotesAreComparedAndRewritten(t *testing.T) {
	root := coursetest.New(t)
	const lesson = "labs/02-name/README.md"
	good := coursetest.Read(t, root, lesson)
	replace(t, root, lesson, "   \treturn\n", "   \tos.Exit(0)\n   \n")
	replace(t, root, lesson, "\n- It says the name.\n", "- It says my name.\n")
	want := []string{
		lesson + ":3: differs from the contract card's lab 2: bin/lab lint --fix rewrites it",
		lesson + ":10: differs from region greet: bin/lab lint --fix rewrites it",
	}
	if diff := cmp.Diff(want, lint(t, root, nil)); diff != "" {
		t.Error(diff)
	}
	changed, err := coursetest.Load(t, root).FixLessons()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{lesson}, changed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(good, coursetest.Read(t, root, lesson)); diff != "" {
		t.Error(diff)
	}
	if changed, err := coursetest.Load(t, root).FixLessons(); err != nil || changed != nil {
		t.Errorf("the second time: %q, %v", changed, err)
	}
}

func TestQuotesWithoutSourceAreNamed(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"unknown region": {"<!-- snippet: nope -->\n```go\n```\n", `README.md:1: there is no region "nope" in operator/`},
		"no code":        {"<!-- snippet: greet -->\n\n```go\n```\n", "README.md:1: a code block (```) follows a snippet comment at once"},
		"no end":         {"<!-- snippet: greet -->\n```go\n", "README.md:1: a code block (```) follows"},
		"unknown lab":    {"<!-- contract: 7 -->\n<!-- contract end -->\n", `README.md:1: contract: "7" is no lab`},
		"open contract":  {"<!-- contract: 1 -->\n", "README.md:1: a contract comment is followed by"},
	} {
		t.Run(name, func(t *testing.T) {
			root := coursetest.New(t)
			coursetest.Write(t, root, "README.md", tc.text)
			problems := lint(t, root, nil)
			if len(problems) != 1 || !strings.HasPrefix(problems[0], tc.want) {
				t.Errorf("%q, want %q", problems, tc.want)
			}
			if _, err := coursetest.Load(t, root).FixLessons(); err != nil || coursetest.Read(t, root, "README.md") != tc.text {
				t.Errorf("fix changed what it cannot fix, or %v", err)
			}
		})
	}
}

func TestSnippetIsTheRegionAtItsOwnLab(t *testing.T) {
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

// Where a marker line stands decides what controller-gen and godoc see.
func TestLintPlacement(t *testing.T) {
	const tooClose = "a region's marker needs an empty line on both sides"
	const inComment = "a region's marker stands inside of this comment"
	const cutsOff = "stands between these + comments and what they belong to"
	for name, tc := range map[string]struct{ body, want string }{
		"around a field": {`type T struct {
	A int

	// lab:2 begin x

	// B is b.
	B int

	// lab:2 end
}`, ""},
		"around a declaration, with before": {`// lab:2 begin x

// T is t.
type T int

// lab:2 before
// // T is t.
// type T string
// lab:2 end`, ""},
		"among the + comments of a type": {`// +kubebuilder:object:root=true
// lab:2 begin x
// +kubebuilder:subresource:status
// lab:2 end

// T is t.
type T int`, ""},
		"in a function": {`// F is f.
func F() {
	// lab:2 begin x
	// Why is this here?
	println()
	// lab:2 end
	println()
}`, ""},
		"in a value": {`var list = []int{
	1,
	// lab:2 begin x
	2,
	// lab:2 end
}`, ""},
		"around RBAC markers": {`// lab:2 begin x

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get

// lab:2 end

// F is f.
func F() {}`, ""},
		"in a doc comment": {`// T is t,
// lab:2 begin x
// and more.
// lab:2 end
type T int`, inComment},
		"in a doc comment of + comments": {`// +kubebuilder:validation:Minimum=1
// lab:2 begin x
// +kubebuilder:validation:Maximum=5
// lab:2 end
type T int`, inComment},
		"directly above a declaration": {`// lab:2 begin x
type T int

// lab:2 end`, tooClose},
		"directly below a field": {`type T struct {
	// lab:2 begin x

	B int
	// lab:2 end
}`, tooClose},
		"between two fields": {`type T struct {
	A int
	// lab:2 begin x

	B int

	// lab:2 end
}`, tooClose},
		"between + comments and their type": {`// +kubebuilder:object:root=true

// lab:2 begin x

// T is t.
type T int

// lab:2 end`, cutsOff},
		"between + comments and their field": {`type T struct {
	// +optional

	// lab:2 begin x

	B int

	// lab:2 end
}`, cutsOff},
		"not formatted": {"type  T int\n// lab:2 begin x\n// lab:2 end", "is not gofmt'ed"},
	} {
		t.Run(name, func(t *testing.T) {
			root := coursetest.New(t)
			coursetest.Write(t, root, "operator/p/p.go", "package p\n\n"+tc.body+"\n")
			problems := strings.Join(lint(t, root, nil), "\n")
			if tc.want == "" && problems != "" || !strings.Contains(problems, tc.want) {
				t.Errorf("%q, want %q", problems, tc.want)
			}
		})
	}
}
