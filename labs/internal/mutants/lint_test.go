package mutants_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/mutants"
)

// lint lints a course in which only what write does to the wrong answers can be wrong.
func lint(t *testing.T, write func(root string)) (got []string) {
	t.Helper()
	root := coursetest.New(t)
	for name, caught := range map[string]string{"m0": "caught: says-name\ncause: silent", "m1": "caught: takes-name\ncause: other"} {
		text := strings.Replace(silent, "caught: says-name\ncause: silent\nalso: [takes-name]", caught, 1)
		coursetest.Write(t, root, "labs/02-name/mutants/"+name+".patch", text)
	}
	write(root)
	problems, err := mutants.Lint(t.Context(), coursetest.Load(t, root))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.File, "labs/02") {
			got = append(got, strings.TrimPrefix(p.Error(), "labs/02-name/mutants"))
		}
	}
	return got
}

func TestLint(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"nothing wrong":      {"", "", nil},
		"other has no hints": {"cause: silent", "cause: loud", []string{`/m0.patch: cause: the check says-name has no hints for "loud"`}},
		"the cause other":    {"cause: silent", "cause: other", nil},
		"caught by another lab": {"caught: says-name", "caught: says-hello", []string{
			`/m0.patch: lab 2 does not judge a check "says-hello"`,
			`/m0.patch: cause: the check says-hello has no hints for "silent"`,
			": no wrong answer is caught by the check says-name",
		}},
		"also another lab's": {"cause: silent", "cause: silent\nalso: [shouts]", []string{`/m0.patch: lab 2 does not judge a check "shouts"`}},
		"no diff": {"---\ndiff", "diff", []string{
			`/m0.patch: there is no line "---" between the description and the diff`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lint(t, func(root string) {
				const file = "labs/02-name/mutants/m0.patch"
				coursetest.Write(t, root, file, strings.Replace(coursetest.Read(t, root, file), c.old, c.new, 1))
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLintKnowsOpeningChecks(t *testing.T) {
	for setup, problems := range map[string]int{"": 2, "setup: [manager]\n": 0} {
		root := coursetest.New(t)
		coursetest.Write(t, root, "labs/03-shout/mutants/says-nothing.patch",
			strings.NewReplacer("also: [takes-name]\n", "", "caught: says-name\ncause: silent", "caught: takes-name\ncause: other").Replace(silent))
		for _, file := range []string{"labs/02-name/lab.yaml", "labs/03-shout/lab.yaml"} {
			coursetest.Write(t, root, file, strings.Replace(coursetest.Read(t, root, file), "checks:", setup+"checks:", 1))
		}
		all, err := mutants.Lint(t.Context(), coursetest.Load(t, root))
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, p := range all {
			if strings.HasSuffix(p.File, ".patch") {
				got++
			}
		}
		if got != problems {
			t.Errorf("%q: %d problems, want %d: %v", setup, got, problems, all)
		}
	}
}

// This is about the course itself.
func TestLintCourse(t *testing.T) {
	problems, err := mutants.Lint(t.Context(), coursetest.Load(t, "../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}
