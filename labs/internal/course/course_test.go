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
	want2 := course.Check{ID: "says-name", Title: "It says the name", Requires: []string{"takes-name"},
		Needs: []string{course.NeedsPods}, Hints: map[string][]string{"silent": {"think"}, "other": {"think"}}}
	if diff := cmp.Diff(want2, c.Labs[1].Checks[1]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{1, 2}, c.Labs[2].Reruns); diff != "" {
		t.Error(diff)
	}
	if c.Labs[1].Minutes != 20 {
		t.Errorf("minutes: %d", c.Labs[1].Minutes)
	}
	teaching := course.Instructor{
		Say: []string{"A program asks.", "It does so once.", "Then it ends."},
		Ask: "What does it say?",
	}
	if diff := cmp.Diff(teaching, c.Labs[1].Instructor); diff != "" {
		t.Error(diff)
	}
}

func TestLabNamesTheValidRange(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	for _, n := range []int{-1, 0, 4, 99} {
		if _, err := c.Lab(n); err == nil || !strings.Contains(err.Error(), "1 to 3") {
			t.Errorf("Lab(%d): %v", n, err)
		}
	}
	if lab, err := c.Lab(3); err != nil || lab.Name != "shout" {
		t.Errorf("Lab(3): %v, %v", lab, err)
	}
}

// Whoever damages a manifest is told file and field, in one line.
func TestLoadRefusesDamagedManifests(t *testing.T) {
	const file = "labs/02-name/lab.yaml"
	for name, tc := range map[string]struct{ old, new, want string }{
		"not YAML":           {"checks:\n", "checks: [\n", "labs/02-name/lab.yaml: line "},
		"empty":              {"*", "", "labs/02-name/lab.yaml: the file is empty"},
		"two documents":      {"schema: 1\n", "schema: 1\n---\n", "more than one YAML document"},
		"unknown field":      {"title: Say whom", "titel: Say whom", `there is no field "titel"`},
		"repeated field":     {"lab: 2", "lab: 2\nlab: 2", "already defined"},
		"wrong type":         {"lab: 2", "lab: two", "cannot unmarshal"},
		"schema":             {"schema: 1", "schema: 2", "lab.yaml: schema: must be 1, is 2"},
		"lab":                {"lab: 2", "lab: 3", "lab.yaml: lab: must be 2"},
		"name":               {"name: name", "name: nom", `lab.yaml: name: must be "name"`},
		"no title":           {"title: Say whom", "", "lab.yaml: title: is missing"},
		"no minutes":         {"minutes: 20\n", "", "lab.yaml: minutes: is missing"},
		"too few minutes":    {"minutes: 20", "minutes: 4", "minutes: must be a whole number from 5 to 120, is 4"},
		"too many minutes":   {"minutes: 20", "minutes: 121", "minutes: must be a whole number from 5 to 120, is 121"},
		"a word for minutes": {"minutes: 20", "minutes: twenty", "cannot unmarshal"},
		"half a minute":      {"minutes: 20", "minutes: 20.5", "minutes: must be a whole number from 5 to 120, is 20.5"},
		"two sentences":      {", Then it ends.]", "]", "instructor.say: must be 3 sentences, has 2"},
		"four sentences":     {", Then it ends.]", ", Then it ends., Then it rests.]", "instructor.say: must be 3 sentences, has 4"},
		"two in one":         {"once.", "once. Or twice.", "instructor.say[1]: must be one sentence"},
		"no full stop":       {"once.", "once", "instructor.say[1]: must be one sentence"},
		"a long sentence": {
			"once.", strings.Repeat("x", 140) + ".",
			"instructor.say[1]: must have at most 140 characters, has 152",
		},
		"an empty sentence":     {"It does so once.", "\"\"", "instructor.say[1]: must be a sentence on one line"},
		"no question":           {"  ask: What does it say?\n", "", "instructor.ask: must be a sentence"},
		"no question mark":      {"say?", "say.", "instructor.ask: must be a question"},
		"no id":                 {"id: says-name", "id:", "lab.yaml: checks[1].id: is missing"},
		"odd id":                {"id: says-name", "id: Says_Name", "checks[1].id: \"Says_Name\" is not an id"},
		"id twice":              {"id: says-name", "id: takes-name", "checks[1].id: \"takes-name\" stands here twice"},
		"id of another lab":     {"id: says-name", "id: says-hello", "checks[1].id: \"says-hello\" is already a check of labs/01-hello"},
		"no check title":        {"title: It says the name", "", "checks[1].title: is missing"},
		"represented by nobody": {"title: Say whom", "title: Say whom\nrepresentative: takes-naam", "representative: \"takes-naam\" is not a check"},
		"requires nobody":       {"requires: [takes-name]", "requires: [takes-naam]", "checks[1].requires[0]: \"takes-naam\""},
		"requires itself":       {"requires: [takes-name]", "requires: [says-name]", "checks[1].requires[0]: \"says-name\""},
		"unknown need":          {"needs: [pods]", "needs: [gpus]", "checks[1].needs[0]: \"gpus\""},
		"no other hint":         {"    silent: [think]\n    other", "    silent", "checks[1].hints: \"other\" is missing"},
		"empty hint":            {"silent: [think]", "silent: [think, \" \"]", "checks[1].hints.silent[1]: is empty"},
		"no hint":               {"silent: [think]", "silent: []", "checks[1].hints.silent: is empty"},
		"rerun of itself":       {"title: Say whom", "title: Say whom\nreruns: [2]", "reruns[0]: must be an earlier lab, is 2"},
	} {
		t.Run(name, func(t *testing.T) {
			root := coursetest.New(t)
			text := coursetest.Read(t, root, file)
			damaged := tc.new
			if tc.old != "*" {
				damaged = strings.Replace(text, tc.old, tc.new, 1)
			}
			if damaged == text {
				t.Fatal("the test changes nothing")
			}
			coursetest.Write(t, root, file, damaged)
			_, err := course.Load(root)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), file) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
}

func TestLoadRefusesDamagedConfig(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"schema":            {"schema: 3", "labs/course.yaml: schema: must be 1"},
		"unknown field":     {"schema: 1\nnevr: []", `labs/course.yaml: line 2: there is no field "nevr"`},
		"lab out of range":  {"schema: 1\nfrom: {4: [docs/]}", "labs/course.yaml: from: there is no lab 4"},
		"path outside":      {"schema: 1\nnever: [/etc/]", `labs/course.yaml: never[0]: "/etc/"`},
		"stage beyond":      {"schema: 1\ngenerated: [{path: a, made: [4]}]", "labs/course.yaml: generated[0].made[0]: there is no stage 4"},
		"stages not rising": {"schema: 1\ngenerated: [{path: a, made: [2, 2]}]", "labs/course.yaml: generated[0].made[1]: the stages must rise"},
		"never made":        {"schema: 1\ngenerated: [{path: a}]", "labs/course.yaml: generated[0].made: is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			root := coursetest.New(t)
			coursetest.Write(t, root, "labs/course.yaml", tc.text)
			if _, err := course.Load(root); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestLoadMissesALab(t *testing.T) {
	root := coursetest.New(t)
	coursetest.Write(t, root, "labs/05-far/lab.yaml", "")
	if _, err := course.Load(root); err == nil || !strings.Contains(err.Error(), "labs/05-far: the next lab is 04") {
		t.Error(err)
	}
}

func TestRepresentativesLeaveOutWhatRunsAgainAsAWhole(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	c.Labs[0].Representative, c.Labs[1].Representative = "says-hello", "takes-name"
	c.Labs[2].Reruns = []int{1}
	want := *c.Labs[1]
	want.Checks = want.Checks[:1] // takes-name
	if diff := cmp.Diff([]*course.Lab{&want}, c.Representatives(3)); diff != "" {
		t.Error(diff)
	}
	if got := c.Representatives(1); got != nil {
		t.Errorf("the first lab asks %v again", got)
	}
}
