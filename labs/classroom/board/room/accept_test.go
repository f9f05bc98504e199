package room_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/internal/finding"
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
	r, err := room.Accept(document(t, good()), small(t))
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

func TestWhatIsNoVerdictIsRefused(t *testing.T) {
	c := small(t)
	for name, tc := range map[string]struct {
		spoil func(*verdict.Result)
		says  string
	}{
		"another schema":       {func(r *verdict.Result) { r.Schema = 2 }, "schema 2"},
		"no such lab":          {func(r *verdict.Result) { r.Lab = 4 }, "there is no lab 4"},
		"no verdict":           {func(r *verdict.Result) { r.Verdict = "great" }, "no verdict"},
		"no run":               {func(r *verdict.Result) { r.Run = "" }, "name of a run"},
		"a run like a path":    {func(r *verdict.Result) { r.Run = "../x" }, "name of a run"},
		"no time":              {func(r *verdict.Result) { r.Started = time.Time{} }, "when"},
		"a run of three days":  {func(r *verdict.Result) { r.Seconds = 3 * 86400 }, "when"},
		"a negative run":       {func(r *verdict.Result) { r.Seconds = -1 }, "when"},
		"a check without id":   {func(r *verdict.Result) { r.Checks[0].ID = "" }, "no check"},
		"a check like markup":  {func(r *verdict.Result) { r.Checks[0].ID = "<b>" }, "no check"},
		"an invented check":    {func(r *verdict.Result) { r.Checks[0].ID = "invented" }, "no check invented"},
		"a check twice":        {func(r *verdict.Result) { r.Checks = append(r.Checks, r.Checks[0]) }, "twice"},
		"an unknown state":     {func(r *verdict.Result) { r.Checks[0].State = "fine" }, "no state"},
		"a pass that fails":    {func(r *verdict.Result) { r.Verdict = verdict.Pass }, "not every check holds"},
		"a pass without build": {func(r *verdict.Result) { r.Verdict, r.Checks, r.Build = verdict.Pass, nil, &verdict.Build{} }, "not every check holds"},
		"a thousand checks":    {func(r *verdict.Result) { r.Checks = make([]verdict.Check, 1000) }, "more than 200 checks"},
		"words of advice":      {func(r *verdict.Result) { r.Advice = make([]string, 5001) }, "5001 lines"},
		"lines of evidence": {func(r *verdict.Result) {
			r.Checks[0].Evidence = []finding.Evidence{{Lines: make([]string, 5000)}}
		}, "5001 lines"},
		"differences": {func(r *verdict.Result) { r.Checks[1].Fields = make([]finding.Field, 5001) }, "5001 lines"},
	} {
		r := good()
		tc.spoil(r)
		if got, err := room.Accept(document(t, r), c); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, text := range map[string]string{
		"checks by the thousand": `{"checks":[` + strings.Repeat("1,", 1000) + `1]}`, "the same in other letters": `{"CHECKS":[` + strings.Repeat("1,", 1000) + `1],"checks":[]}`,
		"nothing": "", "no JSON": "{", "another type": `{"lab":"four"}`, "not UTF-8": "{\"run\":\"\xff\"}", "too large": strings.Repeat(" ", room.SizeLimit) + "{}",
	} {
		if got, err := room.Accept([]byte(text), c); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Laptops are an hour off, and queues are sent late. Both must not make anybody stuck.
func TestTheBoardsClockCounts(t *testing.T) {
	r := good() // ended at 9:01 by the learner's clock
	for name, tc := range map[string]struct{ sent, received, want time.Time }{
		"clocks agree":            {at(2), at(2), at(1)},
		"sent an hour later":      {at(61), at(61), at(1)},
		"the learner's is behind": {at(2), at(62), at(61)},
		"the learner's is ahead":  {at(2), at(-58), at(-59)},
		"does not say":            {time.Time{}, at(2), at(1)},
		"does not say, ahead":     {time.Time{}, at(-58), at(-58)},
		"says it has not run yet": {at(0), at(30), at(30)},
		"both clocks are wrong":   {at(0).AddDate(8000, 0, 0), at(30), at(30)}, // JSON has no time before the year 0
	} {
		if got := room.Ended(r, tc.sent, tc.received); !got.Equal(tc.want) {
			t.Errorf("%s: ended %v, want %v", name, got, tc.want)
		}
	}
}

// Two bytes of such a list make a check of two hundred: what is too long is not made at all.
func TestALongListOfChecksTakesNoMemory(t *testing.T) {
	text := []byte(`{"checks":[` + strings.Repeat("1,", 200_000) + `1]}`)
	c := small(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := room.Accept(text, c)
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; err == nil || made > 32<<20 {
		t.Errorf("%d MiB were made, %v", made>>20, err)
	}
}
