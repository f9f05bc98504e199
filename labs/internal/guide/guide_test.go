package guide_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/guide"
)

const wrongAnswer = `misconception: %s
caught: %s
cause: %s
common: %v
---
diff --git a/main.go b/main.go
--- a/main.go
+++ b/main.go
@@ -30,1 +30,0 @@
-		fmt.Println("hello", os.Args[1])
`

const text = `# Guide

<!-- agenda: 75 minutes -->

| from | minutes | what |
|---|---|---|
| 09:50 | 5 | Welcome |
| 09:55 | 10 | Lab 1: hello |
| 10:05 | 20 | Lab 2: whom |
| 10:25 | 20 of 30 | Lab 3: loud |
| 10:45 | 20 | Lunch |
| 11:05 | | The end |

<!-- labs -->
Nothing yet.
<!-- labs end -->

That is all.
`

// room is a small course with a guide and some wrong answers to its second lab.
func room(t *testing.T, guideText string) (root string, load func() *course.Course) {
	t.Helper()
	root = coursetest.New(t)
	coursetest.Write(t, root, guide.File, guideText)
	for name, answer := range map[string]string{
		"a-rare": fmt.Sprintf(wrongAnswer, "Nobody believes this.", "says-name", "silent", false),
		"b-one":  fmt.Sprintf(wrongAnswer, "Whoever is named knows it.", "says-name", "silent", true),
		"c-two":  fmt.Sprintf(wrongAnswer, "Names are private.", "takes-name", "other", true),
	} {
		coursetest.Write(t, root, "labs/02-name/mutants/"+name+".patch", answer)
	}
	return root, func() *course.Course {
		c, err := course.Load(root)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func lint(t *testing.T, c *course.Course) (lines []string) {
	t.Helper()
	problems, err := guide.Lint(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		lines = append(lines, strings.TrimPrefix(p.Error(), guide.File))
	}
	return lines
}

const secondLab = `
### Lab 2: Say whom

20 minutes (an estimate). [The lesson](../labs/02-name/README.md).

Say:

1. A program asks.
2. It does so once.
3. Then it ends.

The two mistakes seen most:

- They believe: *Whoever is named knows it.*
  They see: **✗ It says the name**
  First hint: think

- They believe: *Names are private.*
  They see: **✗ It takes a name**
  First hint: think

Ask whoever is stuck: **What does it say?**

### Lab 3: Shout
`

func TestThePartAboutTheLabsIsWrittenFromThem(t *testing.T) {
	root, load := room(t, text)
	want := []string{":15: differs from the manifests and the wrong answers: bin/lab lint --fix rewrites it"}
	if diff := cmp.Diff(want, lint(t, load())); diff != "" {
		t.Error(diff)
	}
	changed, err := guide.Fix(load())
	if diff := cmp.Diff([]string{guide.File}, changed); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	written := coursetest.Read(t, root, guide.File)
	if !strings.Contains(written, secondLab) {
		t.Errorf("the second lab is not as it should be:\n%s", written)
	}
	before, after, _ := strings.Cut(text, "Nothing yet.\n")
	if !strings.HasPrefix(written, before) || !strings.HasSuffix(written, after) {
		t.Errorf("something else was changed, too:\n%s", written)
	}
	if problems := lint(t, load()); problems != nil {
		t.Errorf("after it was rewritten: %q", problems)
	}
	if changed, err := guide.Fix(load()); err != nil || changed != nil {
		t.Errorf("the second time: %q, %v", changed, err)
	}
}

// Whatever the part is made of, a change of it makes the guide stale.
func TestTheGuideGoesStale(t *testing.T) {
	const manifest, answer = "labs/02-name/lab.yaml", "labs/02-name/mutants/b-one.patch"
	for name, change := range map[string]struct{ file, old, new string }{
		"title":         {manifest, "title: Say whom", "title: Say who"},
		"minutes":       {manifest, "minutes: 20", "minutes: 15"},
		"sentence":      {manifest, "Then it ends.", "Then it waits."},
		"question":      {manifest, "What does it say?", "What does it hear?"},
		"check's title": {manifest, "title: It says the name", "title: It tells the name"},
		"hint":          {manifest, "silent: [think]", "silent: [listen]"},
		"misconception": {answer, "knows it", "knew it"},
		"mark":          {answer, "common: true", "common: false"},
	} {
		t.Run(name, func(t *testing.T) {
			root, load := room(t, text)
			if _, err := guide.Fix(load()); err != nil {
				t.Fatal(err)
			}
			was := coursetest.Read(t, root, change.file)
			coursetest.Write(t, root, change.file, strings.Replace(was, change.old, change.new, 1))
			problems := lint(t, load())
			if len(problems) != 1 || !strings.Contains(problems[0], "differs from the manifests") {
				t.Errorf("%q", problems)
			}
		})
	}
}

func TestAGuideWithoutAPlaceIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no begin": {"<!-- labs -->", "", ": has no line <!-- labs -->"},
		"no end":   {"<!-- labs end -->", "", ": has no line <!-- labs end --> below <!-- labs -->"},
		"the end comes first": {"<!-- labs -->\nNothing yet.\n<!-- labs end -->", "<!-- labs end -->\n<!-- labs -->",
			": has no line <!-- labs end --> below <!-- labs -->"},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := strings.Replace(text, c.old, c.new, 1)
			root, load := room(t, damaged)
			if diff := cmp.Diff([]string{c.want}, lint(t, load())); diff != "" {
				t.Error(diff)
			}
			changed, err := guide.Fix(load())
			if err != nil || changed != nil || coursetest.Read(t, root, guide.File) != damaged {
				t.Errorf("fix changed %q, or %v", changed, err)
			}
		})
	}
}

func TestAMissingGuideIsMissed(t *testing.T) {
	c, err := course.Load(coursetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{": there is no such file"}, lint(t, c)); diff != "" {
		t.Error(diff)
	}
	if changed, err := guide.Fix(c); err != nil || changed != nil {
		t.Errorf("%q, %v", changed, err)
	}
}

// A wrong answer that cannot be read is named by the lint of the wrong answers, once.
func TestABrokenWrongAnswerIsNotNamedTwice(t *testing.T) {
	root, load := room(t, strings.Replace(text, "09:50", "09:51", 1))
	coursetest.Write(t, root, "labs/02-name/mutants/d-none.patch", "no answer")
	if diff := cmp.Diff([]string{":8: begins at 09:55: what is above ends at 09:56"}, lint(t, load())[:1]); diff != "" {
		t.Error(diff)
	}
	for _, problem := range lint(t, load()) {
		if strings.Contains(problem, "patch") || strings.Contains(problem, "differs") {
			t.Error(problem)
		}
	}
	_, err := guide.Fix(load())
	if _, known := errors.AsType[course.Problem](err); !known {
		t.Errorf("fix wrote a guide without it: %v", err)
	}
}

func TestAgendasAddUp(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"as it is":       {"", "", nil},
		"after the hour": {"| 10:05 | 20 | Lab 2: whom |", "| 10:05 | 20 | Lab 2: anybody |", nil},
		"another sum": {
			"agenda: 75",
			"agenda: 90",
			[]string{":3: the agenda takes 90 minutes: its rows add up to 75"},
		},
		"a time that is off": {"| 10:45 |", "| 10:50 |", []string{":11: begins at 10:50: what is above ends at 10:45"}},
		"minutes that moved": {"| 5 | Welcome", "| 6 | Welcome", []string{
			":3: the agenda takes 75 minutes: its rows add up to 76",
			":8: begins at 09:55: what is above ends at 09:56", ":9: begins at 10:05: what is above ends at 10:06",
			":10: begins at 10:25: what is above ends at 10:26", ":11: begins at 10:45: what is above ends at 10:46",
			":12: begins at 11:05: what is above ends at 11:06"}},
		"a lab in less": {
			"20 of 30",
			"20",
			[]string{`:10: lab 3 takes 30 minutes: write "20 of 30" if it has to do with less`},
		},
		"of other minutes": {"20 of 30", "20 of 40", []string{":10: lab 3 takes 30 minutes, not 40"}},
		"all of its minutes": {
			"| 20 | Lab 2",
			"| 20 of 20 | Lab 2",
			[]string{`:9: lab 2 has all of its minutes: write "20"`},
		},
		"too little of it": {
			"| 10:25 | 20 of 30 | Lab 3: loud |\n| 10:45 | 20 ",
			"| 10:25 | 17 of 30 | Lab 3: loud |\n| 10:42 | 23 ",
			[]string{":10: lab 3 has 17 of its 30 minutes: below 60 % nobody gets anywhere"},
		},
		"just enough of it": {
			"| 10:25 | 20 of 30 | Lab 3: loud |\n| 10:45 | 20 ",
			"| 10:25 | 18 of 30 | Lab 3: loud |\n| 10:43 | 22 ",
			nil,
		},
		"of, and no lab": {
			"| 20 | Lunch",
			"| 20 of 30 | Lunch",
			[]string{":11: only a lab has minutes of other minutes"},
		},
		"no such lab": {
			"Lab 3: loud",
			"Lab 4: louder",
			[]string{":10: there is no lab 4: the labs are 1 to 3"},
		},
		"labs in no order": {"Lab 2: whom", "Lab 1: again", []string{":9: lab 1 comes after lab 1"}},
		"no end": {
			"| 11:05 | | The end |\n",
			"",
			[]string{":11: the last row, and no other, has no minutes"},
		},
		"no minutes": {
			"| 20 | Lunch",
			"| | Lunch",
			[]string{
				":3: the agenda takes 75 minutes: its rows add up to 55",
				":11: the last row, and no other, has no minutes",
				":12: begins at 11:05: what is above ends at 10:45",
			},
		},
		"no row": {
			"| 20 | Lunch |",
			"| twenty | Lunch |",
			[]string{
				":3: the agenda takes 75 minutes: its rows add up to 55",
				":11: a row of an agenda is | 18:00 | 15 | what |",
				":12: begins at 11:05: what is above ends at 10:45",
			},
		},
		"no such time": {
			"11:05",
			"11:65",
			[]string{
				":11: the last row, and no other, has no minutes",
				":12: a row of an agenda is | 18:00 | 15 | what |",
			},
		},
		"no table": {
			"| from",
			"Later.\n\n| from",
			[]string{":3: the agenda has no table, or one without an end"},
		},
		"no agenda": {
			"<!-- agenda: 75 minutes -->\n",
			"",
			[]string{": has no agenda: a table below a line <!-- agenda: 90 minutes -->"},
		},
		"another table below": {"That is all.", "| 10:00 | maybe |\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, load := room(t, strings.Replace(text, c.old, c.new, 1))
			if _, err := guide.Fix(load()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lint(t, load())); diff != "" {
				t.Error(diff)
			}
		})
	}
}
