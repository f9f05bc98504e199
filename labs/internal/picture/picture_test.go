package picture_test

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/picture"
)

// withSource is a small course with one source of a picture.
func withSource(t *testing.T, name, text string) *course.Course {
	t.Helper()
	root := coursetest.New(t)
	coursetest.Write(t, root, course.LabZero+"/README.md", "# Lab 0: Who & why?\n")
	coursetest.Write(t, root, picture.Dir+"/"+name, text)
	return coursetest.Load(t, root)
}

// A title stands in one place, the lab's manifest, and the picture of a lab lights that lab alone.
func TestRouteLightsTheLabOfToday(t *testing.T) {
	c := withSource(t, "route.yaml", "title: The route\ncolumns: 2\nrow: 60\nroute: {1: a greeting}\nfinish: done\n")
	drawn, _, err := picture.Stale(c)
	if want := []string{"route-0.svg", "route-1.svg", "route-2.svg", "route-3.svg"}; err != nil || !slices.Equal(drawn.Paths(), want) {
		t.Fatalf("drew %v: %v", drawn.Paths(), err)
	}
	words := regexp.MustCompile(`<[^>]*>`)
	for today, want := range []string{"0 · Who &amp; why?", "1 · " + c.Labs[0].Title, "2 · " + c.Labs[1].Title, "3 · " + c.Labs[2].Title} {
		svg := string(drawn[drawn.Paths()[today]].Data)
		lit := regexp.MustCompile(`<text class="lit".*`).FindAllString(svg, -1)
		if len(lit) != 1 || !strings.HasPrefix(words.ReplaceAllString(lit[0], ""), want) {
			t.Errorf("lab %d: lit are %q, want %q", today, lit, want)
		}
		if done := strings.Count(svg, `<rect class="done"`); done != today {
			t.Errorf("lab %d: %d labs are done", today, done)
		}
	}
}

func TestStaleNamesWhatDiffers(t *testing.T) {
	c := withSource(t, "pass.yaml", "title: t\nlanes: [a, b]\nsteps: ['a -> b: x']\n")
	coursetest.Write(t, c.Root, picture.Dir+"/removed.svg", "")
	drawn, stale, err := picture.Stale(c)
	if want := []string{"pass.svg", "removed.svg"}; err != nil || !slices.Equal(stale, want) {
		t.Errorf("%v are stale: %v", stale, err)
	}
	coursetest.Write(t, c.Root, picture.Dir+"/pass.svg", string(drawn["pass.svg"].Data))
	if _, stale, err = picture.Stale(c); err != nil || !slices.Equal(stale, []string{"removed.svg"}) {
		t.Errorf("%v are stale: %v", stale, err)
	}
}

func TestMistakeInASourceNamesIt(t *testing.T) {
	for text, want := range map[string]string{
		"title: t\nlanes: [a, b]\nsteps: ['a -> c: x']\n":                          `steps: "a -> c: x"`,
		"title: t\nlanes: [a, b]\nsteps: ['a to b: x']\n":                          `steps: "a to b: x"`,
		"title: t\ncolumns: 1\nboxes: [{id: a, text: x}]\narrows: ['a -> b: x']\n": `arrows: "a -> b: x"`,
		"tilte: t\n": "tilte",
	} {
		_, _, err := picture.Stale(withSource(t, "it.yaml", text))
		if err == nil || !strings.Contains(err.Error(), picture.Dir+"/it.yaml: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A browser shows nothing of a picture that is not well formed, and a page may be dark.
func TestPicturesOfTheCourse(t *testing.T) {
	drawn, _, err := picture.Stale(coursetest.Load(t, "../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range drawn {
		decoder := xml.NewDecoder(strings.NewReader(string(file.Data)))
		for err = nil; err == nil; {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		if len(file.Data) > 20_000 || !strings.Contains(string(file.Data), "prefers-color-scheme:dark") {
			t.Errorf("%s has %d bytes, or one mode", name, len(file.Data))
		}
	}
}

// Screens follow each other in the order and for the time of the source, and stand still for who wants no motion.
func TestScreensFollowEachOther(t *testing.T) {
	c := withSource(t, "it.yaml", "title: t\nscreens: [{seconds: 3, text: '✗ no'}, {seconds: 1, text: '  indented'}]\n")
	drawn, _, err := picture.Stale(c)
	if err != nil {
		t.Fatal(err)
	}
	svg := string(drawn["it.svg"].Data)
	for _, want := range []string{"s0{0%{visibility:hidden}0.0%{visibility:visible}75.0%{", "s1{0%{visibility:hidden}75.0%{visibility:visible}100.0%{",
		"animation:s1 4s", "prefers-reduced-motion", `class="red" x="20" y="33">✗ no<`, ">  indented<", "white-space:pre"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing in\n%s", want, svg)
		}
	}
}
