package board

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/classroom/progress"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func small(t *testing.T) *course.Course {
	t.Helper()
	return coursetest.Load(t, coursetest.New(t))
}

// result is a verdict on a lab with one check, red or not.
func result(c *course.Course, lab int, run string, red bool) *verdict.Result {
	of, _ := c.Lab(lab)
	check := of.Checks[0]
	r := &verdict.Result{
		Schema: 1, Lab: lab, Run: run, Verdict: verdict.Pass, Started: time.Now().Add(-time.Minute), Seconds: 10,
		Checks: []verdict.Check{{ID: check.ID, Title: check.Title, Lab: lab, State: verdict.Passed}},
	}
	if red {
		r.Verdict, r.Checks[0].State = verdict.Fail, verdict.Failed
		r.Checks[0].Expected, r.Checks[0].Seen = "hello", "<script>alert(1)</script>"
	}
	return r
}

func reopen(t *testing.T, dir string, c *course.Course) *Store {
	t.Helper()
	s, err := Open(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStoreHasWhatItTookAfterACrash(t *testing.T) {
	c, dir := small(t), t.TempDir()
	s := reopen(t, dir, c)
	token, err := s.Join("Ana", "", time.Now())
	if err == nil {
		err = errors.Join(s.Keep("Ana", result(c, 1, "r1", true), time.Now()), s.Keep("Ana", result(c, 1, "r1", true), time.Now()))
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, FileName)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(whole, []byte(`{"learner":"Ana","res`)...), 0o600); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, dir, c)
	if err := s.Keep("Ana", result(c, 1, "r2", false), time.Now()); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, dir, c)
	if got := s.Holder(token); got != "Ana" {
		t.Errorf("the token is %q's", got)
	}
	err = s.View(func(all []*progress.Learner) error {
		if len(all) != 1 || !all[0].Passed(1) {
			return fmt.Errorf("%+v", all)
		}
		kept, err := s.result(all[0].Last(1).ID)
		if err == nil && kept.Run != "r2" {
			err = fmt.Errorf("the last is %s", kept.Run)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(string(whole), token) || strings.Count(string(whole), "\n") != 2 {
		t.Errorf("the file has the token itself, or a result twice:\n%s", whole)
	}
}

func TestNamesAreFirstComeFirstServed(t *testing.T) {
	s := reopen(t, t.TempDir(), small(t))
	token, err := s.Join("김민준", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Join(" 김민준 ", token, time.Now()); err != nil || again != token {
		t.Errorf("with the token: %q, %v", again, err)
	}
	for name, want := range map[string]error{"김민준": ErrTaken, "": ErrName, "../x": ErrName, strings.Repeat("a", 41): ErrName, "a\nb": ErrName} {
		if _, err := s.Join(name, "", time.Now()); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	if _, err := s.Join("Ana", "", time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Join("ANA", "", time.Now()); !errors.Is(err, ErrTaken) {
		t.Errorf("other letters: %v", err)
	}
}

// serve serves a board over TLS, and gives what learners type.
func serve(t *testing.T, b *Board) (address, key string) {
	t.Helper()
	certificate, key, err := Certificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(b.ForLearners(), &certificate)
	go func() { _ = s.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String(), key
}

func newBoard(t *testing.T) *Board {
	t.Helper()
	c := small(t)
	return &Board{
		Store: reopen(t, t.TempDir(), c), Course: c, Log: func(line string) { t.Log(line) },
		Offer: func(name string) (roomclient.JoinAnswer, error) {
			return roomclient.JoinAnswer{Kubeconfig: []byte("of " + name)}, nil
		},
	}
}

func TestALearnerJoinsAndTheirVerdictIsShown(t *testing.T) {
	b := newBoard(t)
	address, key := serve(t, b)
	state := t.TempDir()
	var answer *roomclient.JoinAnswer
	join := func(state, name, key string) (err error) {
		_, answer, err = roomclient.Join(t.Context(), state, roomclient.Room{Address: address, Key: key, Name: name})
		return err
	}
	if err := join(state, "Ana", "AAAA-AAAA-AAAA-AAAA"); !errors.Is(err, roomclient.ErrOtherKey) {
		t.Errorf("with another key: %v", err)
	}
	if err := errors.Join(join(state, "Ana", key), join(state, "Ana", key)); err != nil || string(answer.Kubeconfig) != "of Ana" {
		t.Fatal(answer, err)
	}
	if err := join(t.TempDir(), "Ana", key); err == nil || !strings.Contains(err.Error(), "take another") {
		t.Errorf("somebody else under that name: %v", err)
	}
	r := result(b.Course, 2, "r1", true)
	r.Workspace = "/home/lovelace/workspace"
	invalid := result(b.Course, 2, "r0", true)
	invalid.Checks[0].ID = "invented"
	var told []string
	if err := roomclient.Report(t.Context(), state, []*verdict.Result{invalid, r}); err != nil {
		told = append(told, err.Error())
	}
	if len(told) != 1 || !strings.Contains(told[0], "invented") {
		t.Errorf("told %q: one of two is refused, for ever", told)
	}
	page := get(t, b, "http://127.0.0.1:7779/")
	for _, want := range []string{`aria-label="Ana, lab 2: fail, 1 check red`, ">1 learner<"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	detail := get(t, b, "http://localhost:7779/cell/Ana/2")
	if strings.Contains(detail, "<script>") || !strings.Contains(detail, "&lt;script&gt;alert(1)") || !strings.Contains(detail, "make hint-2") {
		t.Errorf("the detail:\n%s", detail)
	}
	if strings.Contains(page+detail, "lovelace") {
		t.Error("the learner's home is shown")
	}
}

// get asks the page for what has to be there.
func get(t *testing.T, b *Board, url string) string {
	t.Helper()
	w := httptest.NewRecorder()
	b.Page().ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, http.NoBody))
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %s", url, w.Code, w.Body)
	}
	return w.Body.String()
}

func TestNobodyWritesWithoutAToken(t *testing.T) {
	b := newBoard(t)
	for _, header := range []string{"", "Bearer ", "Bearer made-up"} {
		r := httptest.NewRequest(http.MethodPost, roomclient.ResultsPath, strings.NewReader("{}"))
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		b.ForLearners().ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", header, w.Code)
		}
	}
}

func TestThePageIsForThisMachine(t *testing.T) {
	b := newBoard(t)
	for url, want := range map[string]int{
		"http://127.0.0.1:7779/": 200, "http://localhost/": 200, "http://[::1]:1/": 200, "http://evil.example/": 403, "http://127.0.0.1.evil.example/": 403,
		"http://127.0.0.1/cell/Nobody/1": 404, "http://127.0.0.1/cell/Nobody/x": 404, "http://127.0.0.1/assets/board.css": 200,
	} {
		w := httptest.NewRecorder()
		b.Page().ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, http.NoBody))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", url, w.Code, want)
		}
	}
	w := httptest.NewRecorder()
	b.ForLearners().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if w.Code != http.StatusNotFound {
		t.Errorf("learners get the page: %d", w.Code)
	}
}

// ada has passed lab 1, failed lab 2 twice, and at lab 3 her machine failed.
func ada(t *testing.T, b *Board) {
	t.Helper()
	broken := result(b.Course, 3, "r4", true)
	broken.Verdict = verdict.Environment
	if _, err := b.Store.Join("Ada", "", time.Now()); err != nil {
		t.Fatal(err)
	}
	for i, r := range []*verdict.Result{
		result(b.Course, 1, "r1", false), result(b.Course, 2, "r2", true), result(b.Course, 2, "r3", true), broken,
	} {
		if err := b.Store.Keep("Ada", r, time.Now().Add(time.Duration(10*i-50)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever sees no colour reads the symbol and the word; whoever sees nothing hears the label.
func TestAPageSaysWhoAndOnWhat(t *testing.T) {
	b := newBoard(t)
	ada(t, b)
	for i := range 8 {
		name := fmt.Sprintf("n%d", i)
		if _, err := b.Store.Join(name, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		if i == 7 {
			continue // has not begun
		}
		if err := b.Store.Keep(name, result(b.Course, 1, "x", true), time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	page := get(t, b, "http://127.0.0.1/")
	for _, want := range []string{
		"9 learners · 1 stuck · 1 not started", `<a href="/cell/Ada/2">Ada, lab 2</a>`,
		"red for 40m, 2 attempts", "<b>7 learners</b>", "1 of 9", "environment", `class="stuck"><th scope="row">Ada`,
		"Ada, lab 3: the machine was at fault", "Ada, lab 1: pass",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if untried := get(t, b, "http://127.0.0.1/cell/n7/1"); !strings.Contains(untried, "not tried yet") {
		t.Error(untried)
	}
}

// Those that somebody tried have a column. Their checks may have the id of a lab's.
func TestTasksAreBesideLabs(t *testing.T) {
	b := newBoard(t)
	same := b.Course.Labs[0].Checks[0].ID
	for _, n := range []int{-3, -4} {
		check := course.Check{ID: same, Title: "It is kept", Hints: map[string][]string{"other": {"Keep it."}}}
		b.Course.Tasks = append(b.Course.Tasks, &course.Lab{Number: n, Title: "Keep", Checks: []course.Check{check}})
	}
	ada(t, b)
	if _, err := b.Store.Join("Bo", "", time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*verdict.Result{result(b.Course, -3, "r5", true), result(b.Course, 1, "r4", true)} {
		if err := b.Store.Keep(map[int]string{-3: "Ada", 1: "Bo"}[r.Lab], r, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	page := get(t, b, "http://127.0.0.1/")
	for _, want := range []string{"cka-3 Keep</th>", "Ada, cka-3: fail, 1 check red", "<i>cka-3</i>", "Bo, cka-3: not tried yet", "<span>cka-3: It is kept</span>", "<span>lab 1: "} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "cka-4") {
		t.Errorf("nobody tried cka-4:\n%s", page)
	}
	detail := get(t, b, "http://127.0.0.1/cell/Ada/-3")
	for _, want := range []string{"Ada, cka-3: fail", "Keep it.", "make hint-cka-3"} {
		if !strings.Contains(detail, want) {
			t.Errorf("no %q in\n%s", want, detail)
		}
	}
}

func TestTheKeyStaysTheSame(t *testing.T) {
	dir := t.TempDir()
	_, first, err1 := Certificate(dir)
	_, second, err2 := Certificate(dir)
	if err := errors.Join(err1, err2); err != nil || first != second {
		t.Errorf("%s, then %s: %v", first, second, err)
	}
	if typed, err := roomclient.ParseKey(strings.ToLower(strings.ReplaceAll(first, "-", " "))); err != nil || typed != first {
		t.Errorf("typed %s: %v", typed, err)
	}
	if _, err := roomclient.ParseKey("ABCD"); err == nil {
		t.Error("a quarter of a key is taken")
	}
}

// A result that is being written when Ctrl-C comes is still taken.
func TestServeLetsRequestsFinish(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	begun, body := make(chan struct{}), make(chan string, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-ctx.Done()
		_, _ = io.WriteString(w, "taken")
	})
	go func() {
		resp, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		body <- string(text)
	}()
	go func() { <-begun; stop() }()
	if err := Serve(ctx, l, NewServer(handler, nil)); err != nil {
		t.Error(err)
	}
	if got := <-body; got != "taken" {
		t.Errorf("the request ended with %q", got)
	}
}
