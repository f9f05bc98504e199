package progress_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/classroom/progress"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func good() *verdict.Result {
	return &verdict.Result{
		Schema: 1, Lab: 2, Verdict: verdict.Fail, Started: nine, Seconds: 60, Run: "20261121-090000-ABCD",
		Workspace: "/home/ada.lovelace/workspace", Artifacts: "/home/ada.lovelace/.lab/artifacts/x",
		Checks: []verdict.Check{
			{ID: "takes-name", Title: "Not what the course says", Lab: 2, State: verdict.Passed},
			{ID: "says-name", Lab: 2, State: verdict.Failed, Cause: "silent", Expected: "a name", Seen: "<script>alert(1)</script>"},
		},
	}
}

func document(t *testing.T, r *verdict.Result) []byte {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAResultIsAccepted(t *testing.T) {
	r, err := progress.Accept(document(t, good()), small(t))
	if err != nil {
		t.Fatal(err)
	}
	if r.Lab != 2 || r.Checks[0].Title != "It takes a name" || r.Checks[1].Seen != "<script>alert(1)</script>" {
		t.Errorf("%+v", r)
	}
	if strings.Contains(string(document(t, r)), "lovelace") {
		t.Errorf("the name of the home folder is kept: %s", document(t, r))
	}
}

func TestTaskResultIsAccepted(t *testing.T) {
	c := small(t)
	c.Tasks = []*course.Lab{{Number: -3, Checks: []course.Check{{ID: "says-name", Title: "Of the task"}}}}
	r := good()
	r.Lab, r.Checks = -3, r.Checks[1:]
	got, err := progress.Accept(document(t, r), c)
	if err != nil || got.Checks[0].Title != "Of the task" || got.Artifacts != "" {
		t.Errorf("%+v, %v", got, err)
	}
	for says, spoil := range map[string]func(){
		`no check "takes-name"`: func() { r.Checks[0].ID = "takes-name" }, // of a lab
		"there is no cka-4":     func() { r.Lab = -4 },
	} {
		spoil()
		if got, err := progress.Accept(document(t, r), c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v, %v", got, err)
		}
		r = good()
		r.Lab, r.Checks = -3, r.Checks[1:]
	}
}

func TestWhatIsNoVerdictIsRefused(t *testing.T) {
	c := small(t)
	for name, tc := range map[string]struct {
		spoil func(*verdict.Result)
		says  string
	}{
		"another schema":     {func(r *verdict.Result) { r.Schema = 2 }, "schema 2"},
		"no such lab":        {func(r *verdict.Result) { r.Lab = 4 }, "there is no lab 4"},
		"no verdict":         {func(r *verdict.Result) { r.Verdict = "great" }, "no verdict"},
		"no run":             {func(r *verdict.Result) { r.Run = "" }, "which run"},
		"no time":            {func(r *verdict.Result) { r.Started = time.Time{} }, "when"},
		"a negative run":     {func(r *verdict.Result) { r.Seconds = -1 }, "when"},
		"a check without id": {func(r *verdict.Result) { r.Checks[0].ID = "" }, "no check"},
		"an invented check":  {func(r *verdict.Result) { r.Checks[0].ID = "invented" }, `no check "invented"`},
		"a check twice":      {func(r *verdict.Result) { r.Checks = append(r.Checks, r.Checks[0]) }, "twice"},
		"an unknown state": {func(r *verdict.Result) {
			r.Checks[0].State, r.Checks[1].State, r.Verdict = "fine", verdict.Passed, verdict.Pass
		}, "not every check holds"},
		"a pass that fails":    {func(r *verdict.Result) { r.Verdict = verdict.Pass }, "not every check holds"},
		"a pass without build": {func(r *verdict.Result) { r.Verdict, r.Checks, r.Build = verdict.Pass, nil, &verdict.Build{} }, "not every check holds"},
	} {
		r := good()
		tc.spoil(r)
		if got, err := progress.Accept(document(t, r), c); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "{", "another type": `{"lab":"four"}`,
	} {
		if got, err := progress.Accept([]byte(text), c); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestEndedIsNeverAfterTheResultCame(t *testing.T) {
	r := good() // ended at 9:01
	for received, want := range map[int]time.Time{2: at(1), 61: at(1), -58: at(-58)} {
		if got := progress.Ended(r, at(received)); !got.Equal(want) {
			t.Errorf("received %v: ended %v, want %v", at(received), got, want)
		}
	}
}
