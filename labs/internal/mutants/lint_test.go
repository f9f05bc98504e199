package mutants_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/mutants"
)

// lint lints a course in which only what write does to the wrong answers can be wrong.
func lint(t *testing.T, write func(root string)) []string {
	t.Helper()
	root := coursetest.New(t)
	for i := range 6 {
		caught := []string{"caught: says-name\ncause: silent", "caught: takes-name\ncause: other"}[i%2]
		text := strings.Replace(silent, "caught: says-name\ncause: silent\nalso: [takes-name]", caught, 1)
		coursetest.Write(t, root, fmt.Sprintf("labs/02-name/mutants/m%d.patch", i), commonly(i, text))
	}
	write(root)
	problems, err := mutants.Lint(t.Context(), coursetest.Load(t, root))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		if strings.HasPrefix(p.File, "labs/02") {
			got = append(got, strings.TrimPrefix(p.Error(), "labs/02-name/mutants"))
		}
	}
	return got
}

// commonly marks the last two of six.
func commonly(i int, text string) string {
	if i < 4 {
		return text
	}
	return "common: true\n" + text
}

func TestLint(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"nothing wrong":          {"", "", nil},
		"a check of another lab": {"caught: says-name", "caught: says-hello", []string{`/m0.patch: caught: lab 2 does not judge a check "says-hello"`}},
		"a cause without hints":  {"cause: silent", "cause: loud", []string{`/m0.patch: cause: the check says-name has no hints for "loud"`}},
		"the cause other":        {"cause: silent", "cause: other", nil},
		"another lab's check as well": {"cause: silent", "cause: silent\nalso: [shouts]",
			[]string{`/m0.patch: also[0]: lab 2 does not judge a check "shouts"`}},
		"the same check as well": {"cause: silent", "cause: silent\nalso: [says-name]",
			[]string{`/m0.patch: also[0]: "says-name" is the check that has to catch it`}},
		"a check twice": {"cause: silent", "cause: silent\nalso: [takes-name, takes-name]",
			[]string{`/m0.patch: also[1]: "takes-name" stands here twice`}},
		"no such stage": {"cause: silent", "cause: silent\nstage: 4",
			[]string{"/m0.patch: stage: there is no stage 4: the stages are 0 to 3"}},
		"a stage that the patch does not reach": {"cause: silent", "cause: silent\nstage: 1",
			[]string{"/m0.patch: diff: changes nothing at stage 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lint(t, func(root string) {
				const file = "labs/02-name/mutants/m0.patch"
				text := coursetest.Read(t, root, file)
				coursetest.Write(t, root, file, strings.Replace(text, c.old, c.new, 1))
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A check that catches no wrong answer is not proven.
func TestLintMissesWrongAnswers(t *testing.T) {
	got := lint(t, func(root string) {
		for i := range 6 {
			text := silent
			if i == 5 {
				text = "no answer"
			}
			coursetest.Write(t, root, fmt.Sprintf("labs/02-name/mutants/m%d.patch", i), commonly(i+1, text))
		}
	})
	want := []string{
		`/m5.patch: there is no line "---" between the description and the diff`,
		": no wrong answer is caught by the check takes-name",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The guide for instructors tells of two mistakes, not of one and not of three.
func TestLintCountsTheCommonMistakes(t *testing.T) {
	for want, toggled := range map[int]int{1: 5, 3: 0} { // one mark less, one more
		got := lint(t, func(root string) {
			file := fmt.Sprintf("labs/02-name/mutants/m%d.patch", toggled)
			text, had := strings.CutPrefix(coursetest.Read(t, root, file), "common: true\n")
			if !had {
				text = "common: true\n" + text
			}
			coursetest.Write(t, root, file, text)
		})
		text := fmt.Sprintf(": common: %d wrong answers have it, and it marks the 2 that are seen most", want)
		if diff := cmp.Diff([]string{text}, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestLintKnowsOpeningChecks(t *testing.T) {
	for setup, problems := range map[string]int{"": 1, "setup: [manager]\n": 0} {
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
