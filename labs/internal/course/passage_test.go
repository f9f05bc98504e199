package course_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestAPassageIsWhereARegionStands(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
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
	c := coursetest.Load(t, checkout(t))
	found := map[string]bool{}
	for name := range render(t, c, len(c.Labs)) {
		passages, err := c.Passages(len(c.Labs), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range passages {
			found[p.Region.ID] = true
			if p.Region.Text == "" || p.From > p.To {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	for _, id := range []string{"fetch", "owns", "rbac-markers", "warn-once"} {
		if !found[id] {
			t.Errorf("the region %s is nowhere", id)
		}
	}
}

func TestWhatAGeneratorMakesIsNotWritten(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	for name, want := range map[string]bool{"main.go": true, "main_test.go": false, "zz_generated.txt": false, "config/made.yaml": false} {
		if got := c.Written(name); got != want {
			t.Errorf("%s: written %v, want %v", name, got, want)
		}
	}
}
