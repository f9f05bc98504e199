// Package boardtest makes boards for tests: rooms with learners in them, results as lab check writes them, and
// a board that serves on loopback. Its own tests look at the page in a browser.
package boardtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/server"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Course is the course of this checkout.
func Course(t testing.TB) *course.Course {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	c, err := course.Load(filepath.Join(filepath.Dir(file), "..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Result is a verdict on a lab, as lab check writes it: pass, or fail where checks are red. What requires a red
// one is blocked.
func Result(c *course.Course, lab int, run string, ended time.Time, red ...string) *verdict.Result {
	const seconds = 42.5
	r := &verdict.Result{
		Schema: 1, Lab: lab, Verdict: verdict.Pass, Run: run, Seed: 4711, Seconds: seconds,
		Started: ended.Add(-time.Duration(seconds * float64(time.Second))), Workspace: "/home/ada/workspace",
		Cluster: verdict.Cluster{Provider: "kind", Version: "v1.36.3"},
	}
	for _, check := range c.Labs[lab-1].Checks {
		v := verdict.Check{ID: check.ID, Title: check.Title, Lab: lab, State: verdict.Passed, Seconds: 1.5}
		for _, by := range check.Requires {
			if slices.Contains(red, by) {
				v.State, v.BlockedBy = verdict.Blocked, by
			}
		}
		if slices.Contains(red, check.ID) {
			v.State, v.BlockedBy, v.Cause = verdict.Failed, "", "other"
			v.Expected, v.Seen = "what the contract card says of "+check.ID, "something else, after 5 s"
		}
		if v.State != verdict.Passed {
			r.Verdict = verdict.Fail
		}
		r.Checks = append(r.Checks, v)
	}
	return r
}

// Board is one that serves.
type Board struct {
	Store  *store.Store
	Course *course.Course
	// URL is without a slash at its end.
	URL string
	// Instructor is a token that reads.
	Instructor string

	rules   room.Rules
	address string
	// stop ends the server and waits for it; nil when there is none.
	stop func() error
}

// Serve serves an empty board on loopback until the test ends.
func Serve(t testing.TB, c *course.Course, rules room.Rules) *Board {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &Board{Store: s, Course: c, rules: rules, address: "127.0.0.1:0"}
	b.Start(t)
	t.Cleanup(func() {
		b.Stop(t)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	instructor, err := s.AddInstructorToken(t.Context(), "instructor", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b.Instructor = instructor.Reveal()
	return b
}

// Start serves the board, at the address that it had before.
func (b *Board) Start(t testing.TB) {
	t.Helper()
	srv, err := server.New(t.Context(), server.Config{Store: b.Store, Course: b.Course, Rules: b.rules, Log: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	b.address = listener.Addr().String()
	b.URL = "http://" + b.address
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, listener) }()
	b.stop = func() error {
		cancel()
		return <-served
	}
}

// Stop ends serving, as Ctrl-C does.
func (b *Board) Stop(t testing.TB) {
	t.Helper()
	if b.stop == nil {
		return
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	b.stop = nil
}

// Learner lets somebody in, and returns their token.
func (b *Board) Learner(t testing.TB, name string) string {
	t.Helper()
	tok, err := b.Store.AddLearnerToken(t.Context(), name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return tok.Reveal()
}

// Post sends a result with a token, and returns the status of the answer.
func (b *Board) Post(ctx context.Context, tok string, r *verdict.Result) (int, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL+"/api/v1/results", bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+tok)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// Send posts results that have to be taken.
func (b *Board) Send(t testing.TB, tok string, results ...*verdict.Result) {
	t.Helper()
	for _, r := range results {
		if code, err := b.Post(t.Context(), tok, r); err != nil || code != http.StatusCreated {
			t.Fatalf("post %s: %d, %v", r.Run, code, err)
		}
	}
}

// Fill brings n learners into the room, each somewhere in the course: some fail, some are stuck, some machines
// are at fault, some have not begun. It is the same room every time.
func (b *Board) Fill(t testing.TB, n int, now time.Time) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("learner-%d", i+1)
		tok := b.Learner(t, name)
		at := (i*5)%(len(b.Course.Labs)+1) + 1
		var results []*verdict.Result
		for lab := 1; lab < min(at, len(b.Course.Labs)+1); lab++ {
			results = append(results, Result(b.Course, lab, fmt.Sprintf("run-%d", lab), now.Add(time.Duration(lab-60)*time.Minute)))
		}
		if at <= len(b.Course.Labs) {
			results = append(results, b.trials(at, i, now)...)
		}
		b.Send(t, tok, results...)
	}
}

// trials are what a learner has tried at a lab that they have not passed.
func (b *Board) trials(lab, i int, now time.Time) []*verdict.Result {
	checks := b.Course.Labs[lab-1].Checks
	red := checks[i%3%len(checks)].ID
	switch i % 6 {
	case 0:
		return nil
	case 1:
		machine := Result(b.Course, lab, "run-machine", now.Add(-time.Minute))
		machine.Verdict, machine.Environment = verdict.Environment, verdict.Finding{Finding: "the disk is full", Fix: "make down"}
		return []*verdict.Result{machine}
	case 2:
		var all []*verdict.Result
		for try := range 4 {
			all = append(all, Result(b.Course, lab, fmt.Sprintf("run-try-%d", try), now.Add(time.Duration(try*3-14)*time.Minute), red))
		}
		return all
	}
	return []*verdict.Result{Result(b.Course, lab, "run-try", now.Add(-2*time.Minute), red, checks[len(checks)-1].ID)}
}
