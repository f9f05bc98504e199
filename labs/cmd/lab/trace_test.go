package main

import (
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/trace"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// ran pretends that lab n of the workspace was judged, with the checks takes-name and says-name, and leaves its trace.
func (l learner) ran(n int, recording string) {
	l.Helper()
	r := verdict.Result{
		Lab: n, Verdict: verdict.Pass, Artifacts: filepath.Join(l.State, "artifacts", "run"),
		Checks: []verdict.Check{{ID: "takes-name", Lab: n, State: verdict.Passed}, {ID: "says-name", Lab: n, State: verdict.Passed}},
	}
	l.judged(r)
	if recording != "" {
		coursetest.Write(l, r.Artifacts, trace.File, recording)
	}
}

const recording = `{"at":"2026-11-21T10:00:01Z","actor":"you","verb":"created","kind":"Memcached","name":"one","namespace":"lab-takes-name-abcde"}
{"at":"2026-11-21T10:00:02Z","actor":"you","verb":"created","kind":"Memcached","name":"two","namespace":"lab-says-name-abcde"}
`

func TestTraceShowsOneCheck(t *testing.T) {
	l := newLearner(t)
	l.ran(2, recording)
	for line, want := range map[string][]string{
		"trace 2":                   {"created Memcached one", "CHECK=id", "says-name, takes-name", "!Memcached two"},
		"trace 2 --check says-name": {"created Memcached two", "!Memcached one"},
	} {
		l.reads(line, want...)
	}
}

// The page has nothing that a browser would run or load, whatever names there are.
func TestTraceWritesAPage(t *testing.T) {
	l := newLearner(t)
	l.ran(2, recording+`{"at":"2026-11-21T10:00:05Z","actor":"<script>x</script>","verb":"created","kind":"Pod","name":"\u001b[31mred","namespace":"lab-says-name-abcde"}`)
	page := filepath.Join(l.State, "artifacts", "run", "trace.html")
	l.reads("trace 2 --check says-name", "for a browser: "+page)
	text := coursetest.Read(t, filepath.Dir(page), "trace.html")
	requireText(t, page, text, "takes-name", "created Memcached one", "<details open>", "says-name", "created Memcached two", "3.0 s without an action", "3.00", "&lt;script&gt;", "created Pod red", "!<script", "!\x1b")
}

func TestTraceSaysWhyThereIsNone(t *testing.T) {
	l := newLearner(t)
	l.ran(1, "")
	l.reads("trace 1", "the lab runs no operator")
	l.ran(2, recording)
	for line, says := range map[string]string{
		"trace 3": "make lab-3", "trace 4": "1 to 3", "trace 2 --check nonsense": "make trace-2", "trace 1 2": "use lab trace [N]",
	} {
		l.isRefused(line, says)
	}
}
