package course_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestAPassageIsWhereARegionStands(t *testing.T) {
	c := load(t, coursetest.New(t))
	for stage, want := range map[int][]string{
		0: nil,
		1: {`hello: 	// TODO(lab 2): Greet the first argument, if there is one. … 	fmt.Println("hello")`},
		3: {
			`loud-field: 	// Loud asks for shouting. … 	Loud bool`,
			`hello: 	if len(os.Args) > 1 { … 	fmt.Println("hello")`,
			`greet: 	if len(os.Args) > 1 { … 	}`,
		},
	} {
		passages, err := c.Passages(stage, "main.go")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(render(t, c, stage)["main.go"].Data), "\n")
		var got []string
		for _, p := range passages {
			got = append(got, fmt.Sprintf("%s: %s … %s", p.Region.ID, lines[p.From-1], lines[p.To-1]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stage %d (-want +got):\n%s", stage, diff)
		}
	}
}

func TestEveryRegionWithATextHasAPassage(t *testing.T) {
	c := load(t, checkout(t))
	for name := range render(t, c, len(c.Labs)) {
		passages, err := c.Passages(len(c.Labs), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range passages {
			if p.Region.Text == "" || p.From > p.To {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	for _, id := range []string{"fetch", "owns", "rbac-markers", "warn-once"} {
		r, err := c.Region(id)
		if err != nil {
			t.Fatal(err)
		}
		passages, err := c.Passages(len(c.Labs), r.File)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range passages {
			found = found || p.Region.ID == id
		}
		if !found {
			t.Errorf("the region %s is nowhere in %s", id, r.File)
		}
	}
}

func TestWhatAGeneratorMakesIsNotWritten(t *testing.T) {
	c := load(t, coursetest.New(t))
	for name, want := range map[string]bool{"main.go": true, "main_test.go": false, "zz_generated.txt": false, "config/made.yaml": false} {
		if got := c.Written(name); got != want {
			t.Errorf("%s: written %v, want %v", name, got, want)
		}
	}
}
