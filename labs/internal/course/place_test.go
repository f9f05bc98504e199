package course_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestPlaceFindsTheCodeOfARegion(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	for _, tc := range []struct {
		region, want string
		stage        int
		files        string // instead of the stage's
	}{
		{"loud-field", "main.go:13: \t// TODO(lab 3): Add the field Loud.", 2, ""},
		{"shout", "main.go:12: \t// TODO(lab 1): Say hello.", 0, ""}, // of the region around it
		{"shout", "main.go:18: func main() {", 3, ""},
		{"loud-field", "main.go:10: type Options struct {", 3, ""},
		{"build-after-generate", "Makefile:1: build: generate", 3, ""},
		{"greet", "other.go:3: func main() {", 3, "-- main.go --\npackage main\n-- other.go --\npackage main\n\nfunc main() {\n\tdoes not compile\n"},
		{"greet", "main.go:1: package main", 3, "-- main.go --\npackage main\n"},
		{"greet", ":0: ", 3, "-- README --\n"},
	} {
		dir := coursetest.Stage(t, c, tc.stage)
		if tc.files != "" {
			dir = t.TempDir()
		}
		for _, f := range txtar.Parse([]byte(tc.files)).Files {
			coursetest.Write(t, dir, f.Name, string(f.Data))
		}
		file, line := c.Place(dir, tc.region)
		text := ""
		if line > 0 {
			text = strings.Split(coursetest.Read(t, dir, file), "\n")[line-1]
		}
		if got := fmt.Sprintf("%s:%d: %s", file, line, text); got != tc.want {
			t.Errorf("%s at stage %d: %q, want %q", tc.region, tc.stage, got, tc.want)
		}
	}
}
