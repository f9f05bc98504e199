package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// hintedCourse is a small course whose first lab has a check with several causes.
func hintedCourse(t *testing.T) (*app, *bytes.Buffer) {
	t.Helper()
	a, out := appInSmallCourse(t)
	coursetest.Write(t, a.Root, "labs/01-hello/lab.yaml", `schema: 1
lab: 1
name: hello
title: Say hello
checks:
- id: says-hello
  title: It says hello
  hints:
    other: [think]
- id: greets
  title: It greets
  hints:
    silent: [listen, a voice says something, look at main.go]
    hidden: [listen]
    manager-exited: [it ended, why]
    other: [think]
  regions: {hidden: hello}
`)
	return a, out
}

// hinted writes a result of lab 1 and gives what `lab hint 1` says, once for every call.
func hinted(t *testing.T, a *app, out *bytes.Buffer, r verdict.Result) func() string {
	t.Helper()
	r.Schema, r.Lab = 1, 1
	if r.Workspace == "" {
		r.Workspace = a.workspace
	}
	if err := r.Write(a.State); err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		out.Reset()
		if err := with(newHintCommand(a), "1").ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
}

func failure(id, cause string) verdict.Check {
	return verdict.Check{ID: id, Title: "It says hello", Lab: 1, State: verdict.Failed, Cause: cause, Seen: "silence"}
}

func requireHints(t *testing.T, text string, want, wantNot []string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q lacks %q", text, w)
		}
	}
	for _, w := range wantNot {
		if strings.Contains(text, w) {
			t.Errorf("%q has %q already", text, w)
		}
	}
}

// The verdict gave the first. Another check with the same failure takes nothing back; a failure of another cause begins anew.
func TestEachCallTellsTheNextHint(t *testing.T) {
	a, out := hintedCourse(t)
	after := func(cause string) string {
		t.Helper()
		return hinted(t, a, out, verdict.Result{Verdict: verdict.Fail, Checks: []verdict.Check{failure("greets", cause)}})()
	}
	first := []string{"It says hello", "silence", "1. listen", "2. a voice", "`make hint-1` again"}
	requireHints(t, after("silent"), first, []string{"3. "})
	requireHints(t, after("silent"), []string{"1. listen", "2. a voice", "3. look at main.go", "That was all", "`make solve-1`"}, nil)
	requireHints(t, after("silent"), []string{"3. look at main.go", "That was all"}, nil)
	requireHints(t, after("nobody-thought-of-it"), []string{"1. think", "That was all"}, []string{"listen"})
	requireHints(t, after("silent"), first, []string{"3. "})
}

// After the last hint comes one part of our code, for those who want it.
func TestLastHintIsARegionOfOurCode(t *testing.T) {
	a, out := hintedCourse(t)
	hint := hinted(t, a, out, verdict.Result{Verdict: verdict.Fail, Checks: []verdict.Check{failure("greets", "hidden")}})
	requireHints(t, hint(), []string{"1. listen", "`make hint-1 YES=1`"}, []string{"fmt.Println"})
	a.Yes = true
	requireHints(t, hint(), []string{"in our code", "fmt.Println"}, []string{"lab:1 begin"})
	a.Yes = false
	requireHints(t, hint(), []string{"fmt.Println"}, nil) // who has seen it is not asked again
	requireHints(t, hinted(t, a, out, verdict.Result{Verdict: verdict.Fail, Checks: []verdict.Check{failure("greets", "silent")}})(),
		[]string{"listen"}, []string{"fmt.Println"})
}

func TestHintIsAboutTheFirstFailure(t *testing.T) {
	a, out := hintedCourse(t)
	hint := hinted(t, a, out, verdict.Result{Verdict: verdict.Fail, Checks: []verdict.Check{
		{ID: "says-hello", Title: "Not this one", Lab: 1, State: verdict.Failed, Cause: "other"}, failure("greets", "manager-exited"),
	}})
	requireHints(t, hint(), []string{"It says hello", "1. it ended"}, []string{"Not this one"})
}

func TestHintsWithoutAFailure(t *testing.T) {
	a, out := hintedCourse(t)
	for name, tc := range map[string]struct {
		result verdict.Result
		want   string
	}{
		"nothing failed": {verdict.Result{Verdict: verdict.Pass}, "Nothing failed"},
		"the machine is at fault": {verdict.Result{Verdict: verdict.Environment, Checks: []verdict.Check{failure("greets", "silent")},
			Environment: verdict.Finding{Finding: "no disk", Fix: "make doctor"}}, "no disk\nWhat fixes it: make doctor"},
		"nothing was built": {verdict.Result{Verdict: verdict.Fail, Build: &verdict.Build{Output: "cmd/main.go:1:2: undefined: x"}}, "cmd/main.go:1:2"},
	} {
		if text := hinted(t, a, out, tc.result)(); !strings.Contains(text, tc.want) || strings.Contains(text, "listen") {
			t.Errorf("%s: %q lacks %q, or has a hint", name, text, tc.want)
		}
	}
}

func TestHintIsAboutThisWorkspace(t *testing.T) {
	a, out := hintedCourse(t)
	silent := verdict.Result{Verdict: verdict.Fail, Checks: []verdict.Check{failure("greets", "silent")}}
	requireHints(t, hinted(t, a, out, silent)(), []string{"2. a voice"}, []string{"3. "})
	mine := a.workspace
	a.workspace = "/elsewhere/workspace"
	err := with(newHintCommand(a), "1").ExecuteContext(t.Context())
	if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "make lab-1 WORKSPACE=/elsewhere") {
		t.Errorf("got %v after %q", err, out)
	}
	requireHints(t, hinted(t, a, out, silent)(), []string{"2. a voice"}, []string{"3. "})
	a.workspace = mine
	requireHints(t, hinted(t, a, out, silent)(), []string{"3. look"}, nil)
}
