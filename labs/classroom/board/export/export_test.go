package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/classroom/board/boardtest"
	"github.com/example/operator-lab/labs/classroom/board/export"
	"github.com/example/operator-lab/labs/classroom/board/intake"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// hostile is what a learner may be called, and what their machine may say.
const hostile = `=HYPERLINK("http://e.example";1)<script>alert(1)</script>`

// records are of three learners: one passed and failed, one whose machine failed, one who has a name.
func records(t *testing.T) (*export.Records, *course.Course) {
	t.Helper()
	c := boardtest.Course(t)
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	in := intake.Intake{Store: s, Course: c, Now: func() time.Time { return noon }}
	keep := func(name string, r *verdict.Result) {
		l, err := s.Learner(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r)
		if err == nil {
			_, err = in.Keep(t.Context(), l, data, time.Time{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	keep("bob", boardtest.Result(c, 1, "b-1", noon.Add(-time.Hour)))
	red := c.Labs[3].Checks[0].ID
	for i, run := range []string{"a-1", "a-2", "a-3"} {
		keep("ada", boardtest.Result(c, 4, run, noon.Add(time.Duration(i-3)*time.Minute), red))
	}
	keep("ada", boardtest.Result(c, 1, "a-0", noon.Add(-time.Hour)))
	machine := boardtest.Result(c, 1, "b-2", noon, c.Labs[0].Checks[0].ID)
	machine.Verdict, machine.Environment.Finding = verdict.Environment, "the disk is full\x01"
	keep("bob", machine)
	build := boardtest.Result(c, 2, "h-1", noon, c.Labs[1].Checks[0].ID)
	build.Build, build.Checks[0].Seen = &verdict.Build{Output: hostile}, hostile
	keep(hostile, build)
	r, err := export.Read(t.Context(), s, c, room.DefaultRules, noon)
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

func write(t *testing.T, name string, r *export.Records) string {
	t.Helper()
	f, err := export.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCSVHasALineForEachLearnerAndLab(t *testing.T) {
	r, c := records(t)
	rows, err := csv.NewReader(strings.NewReader(write(t, "csv", r))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	red := c.Labs[3].Checks[0].ID
	var short [][]string
	for _, row := range rows {
		short = append(short, []string{row[0], row[1], row[3], row[4], row[5], row[9], row[10]})
	}
	want := [][]string{
		{"learner", "lab", "verdict", "passed", "tries", "red", "run"},
		{"'" + strings.ReplaceAll(hostile, ";", ","), "2", "fail", "false", "1", "build " + c.Labs[1].Checks[0].ID, "h-1"}, // no formula
		{"ada", "1", "pass", "true", "1", "", "a-0"},
		{"ada", "4", "fail", "false", "3", red, "a-3"},
		{"bob", "1", "environment", "true", "1", c.Labs[0].Checks[0].ID, "b-2"},
	}
	if diff := cmp.Diff(want, short); diff != "" {
		t.Error(diff)
	}
}

func TestNoCellOfACSVIsAFormula(t *testing.T) {
	r, _ := records(t)
	for _, first := range []string{"=", "+", "-", "@", "\t", "＝", "＋", "－", "＠"} {
		r.Learners[0].Name = first + "1"
		rows, err := csv.NewReader(strings.NewReader(write(t, "csv", r))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := rows[1][0], "'"+first+"1"; got != want {
			t.Errorf("the cell is %q, want %q", got, want)
		}
	}
}

func TestJSONHasTheHistory(t *testing.T) {
	r, c := records(t)
	var got struct {
		Schema   int
		At       time.Time
		Learners []struct {
			Name, Stuck string
			At          int
			Labs        []struct {
				Lab     int
				Passed  bool
				History []struct{ Run string }
				Result  verdict.Result
			}
		}
	}
	if err := json.Unmarshal([]byte(write(t, "json", r)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != 1 || !got.At.Equal(noon) || len(got.Learners) != 3 {
		t.Fatalf("%+v", got)
	}
	ada := got.Learners[1]
	if ada.Name != "ada" || ada.At != 4 || ada.Stuck != c.Labs[3].Checks[0].ID || len(ada.Labs) != 2 {
		t.Fatalf("%+v", ada)
	}
	lab4 := ada.Labs[1]
	if lab4.Passed || len(lab4.History) != 3 || lab4.History[0].Run != "a-1" || lab4.Result.Run != "a-3" || len(lab4.Result.Checks) != len(c.Labs[3].Checks) {
		t.Errorf("%+v", lab4)
	}
}

func TestAnUnknownFormatIsWrongUsage(t *testing.T) {
	if _, err := export.ByName("pdf"); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "csv") {
		t.Errorf("%v", err)
	}
}
