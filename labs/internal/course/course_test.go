package course_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestLoadReadsLabsInOrder(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	var got []string
	for _, lab := range c.Labs {
		got = append(got, lab.Dir+" "+lab.Title)
	}
	want := []string{"labs/01-hello Say hello", "labs/02-name Say whom", "labs/03-shout Shout"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, n := range []int{-1, 0, 4} {
		if _, err := c.Lab(n); err == nil || !strings.Contains(err.Error(), "1 to 3") {
			t.Errorf("Lab(%d): %v", n, err)
		}
	}
}

func TestLoadNamesFileAndField(t *testing.T) {
	const manifest = "labs/02-name/lab.yaml"
	for name, tc := range map[string]struct{ old, new, want string }{
		"not YAML":          {"checks:\n", "checks: [\n", "line "},
		"unknown field":     {"title: Say whom", "titel: Say whom", "line 1: field titel not found"},
		"id twice":          {"id: says-name", "id: takes-name", `checks[1].id: "takes-name" is already a check of labs/02-name`},
		"id of another lab": {"id: says-name", "id: says-hello", `checks[1].id: "says-hello" is already a check of labs/01-hello`},
		"requires itself":   {"requires: [takes-name]", "requires: [says-name]", `checks[1].requires: "says-name" is none of says-hello, takes-name`},
		"unknown need":      {"needs: [pods]", "needs: [gpus]", `checks[1].needs: "gpus" is none of pods, `},
		"unknown setup":     {"title: Say whom", "title: Say whom\nsetup: [moon]", `setup: "moon" is none of definition, `},
		"no other hint":     {"    silent: [think]\n    other", "    silent", `checks[1].hints: "other" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			root := coursetest.New(t)
			replace(t, root, manifest, tc.old, tc.new)
			_, err := course.Load(root)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), manifest) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tc.want)
			}
		})
	}
}

func TestLoadFindsMissingLab(t *testing.T) {
	root := coursetest.New(t)
	coursetest.Write(t, root, "labs/05-far/lab.yaml", "")
	if _, err := course.Load(root); err == nil || !strings.Contains(err.Error(), "labs/05-far: the next lab is 04") {
		t.Error(err)
	}
}

func TestOpeningsOfEarlierLabs(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	c.Labs[1].Setup, c.Labs[2].Setup = []string{course.SetupManager}, []string{course.SetupManager}
	want := *c.Labs[1]
	want.Checks = want.Checks[:1] // takes-name
	if diff := cmp.Diff([]*course.Lab{&want}, c.Openings(3)); diff != "" {
		t.Error(diff)
	}
	c.Labs[2].Setup = append(c.Labs[2].Setup, course.SetupRole)
	for _, n := range []int{1, 2, 3} {
		if got := c.Openings(n); got != nil {
			t.Errorf("lab %d asks %v again", n, got)
		}
	}
	if c.UnderRole(2) || !c.UnderRole(3) {
		t.Error("the role counts from the third lab on")
	}
}

func TestChecksRunWhereTheirNeedsAreMet(t *testing.T) {
	for need, want := range map[string][2]bool{"": {true, true}, course.NeedsPods: {true, false}, course.NeedsLoopback: {false, true}} {
		check := course.Check{Needs: []string{need}}
		if got := [2]bool{check.RunsOn(true), check.RunsOn(false)}; got != want {
			t.Errorf("%q runs in containers and as processes: %v, want %v", need, got, want)
		}
	}
}
