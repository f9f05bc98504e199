package guide_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/course/guide"
)

const text = `# Guide

Welcome.

<!-- labs -->
Nothing yet.
<!-- labs end -->

That is all.
`

// room is a small course with a guide.
func room(t *testing.T, guideText string) (root string, load func() *course.Course) {
	t.Helper()
	root = coursetest.New(t)
	coursetest.Write(t, root, guide.File, guideText)
	return root, func() *course.Course { return coursetest.Load(t, root) }
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

Ask whoever is stuck: **What does it say?**

### Lab 3: Shout
`

func TestThePartAboutTheLabsIsWrittenFromThem(t *testing.T) {
	root, load := room(t, text)
	want := []string{":6: differs from the manifests: bin/lab lint --fix rewrites it"}
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
	const manifest = "labs/02-name/lab.yaml"
	for name, change := range map[string]struct{ file, old, new string }{
		"title":    {manifest, "title: Say whom", "title: Say who"},
		"minutes":  {manifest, "minutes: 20", "minutes: 15"},
		"sentence": {manifest, "Then it ends.", "Then it waits."},
		"question": {manifest, "What does it say?", "What does it hear?"},
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
	c := coursetest.Load(t, coursetest.New(t))
	if diff := cmp.Diff([]string{": there is no such file"}, lint(t, c)); diff != "" {
		t.Error(diff)
	}
	if changed, err := guide.Fix(c); err != nil || changed != nil {
		t.Errorf("%q, %v", changed, err)
	}
}
