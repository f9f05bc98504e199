package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters/pipetest"
	"github.com/example/operator-lab/labs/classroom/board/boardtest"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/server"
	"github.com/example/operator-lab/labs/classroom/board/store"
)

// request is one to a board; header lines are "Name: value".
type request struct {
	method, path, token, body string
	header                    []string
	host                      string
}

// answer is what came back; redirects are not followed.
type answer struct {
	code   int
	header http.Header
	body   string
}

func ask(t *testing.T, b *boardtest.Board, r request) answer {
	t.Helper()
	return askBy(t, &http.Client{}, b.URL, r)
}

// askBy asks as that client does.
func askBy(t *testing.T, client *http.Client, url string, r request) answer {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, url+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	for _, line := range r.header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	if r.host != "" {
		req.Host = r.host
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// serveInMemory serves an empty board for a fake clock. stop ends it, as Ctrl-C does.
func serveInMemory(t *testing.T) (b *boardtest.Board, dial func(context.Context) (net.Conn, error), stop func()) {
	t.Helper()
	l := pipetest.Listen()
	b, stop = serveOn(t, l, tls.Certificate{})
	b.URL = l.URL
	return b, l.Dial, stop
}

// serveOn serves an empty board on a listener. stop ends it.
func serveOn(t *testing.T, l net.Listener, pair tls.Certificate) (b *boardtest.Board, stop func()) {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := boardtest.Course(t)
	srv, err := server.New(t.Context(), server.Config{
		Store: s, Course: c, Rules: room.DefaultRules, Certificate: pair, Log: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	instructor, err := s.AddInstructorToken(t.Context(), "instructor", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &boardtest.Board{Store: s, Course: c, Instructor: instructor.Reveal()}, stop
}

// post is a result that is in order.
func post(t *testing.T, b *boardtest.Board, token, run string) request {
	t.Helper()
	data, err := json.Marshal(boardtest.Result(b.Course, 1, run, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return request{method: http.MethodPost, path: "/api/v1/results", token: token, body: string(data), header: []string{"Content-Type: application/json"}}
}

func serve(t *testing.T) *boardtest.Board {
	t.Helper()
	return boardtest.Serve(t, boardtest.Course(t), room.DefaultRules)
}

func kept(t *testing.T, b *boardtest.Board) int {
	t.Helper()
	n := 0
	if err := b.Store.Each(t.Context(), 0, func(store.Result) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// Who may do what. A learner's token reads nothing of the room, not even that learner's own results.
func TestATokenOpensOnlyWhatItIsFor(t *testing.T) {
	b := serve(t)
	ada := b.Learner(t, "Ada")
	b.Send(t, ada, boardtest.Result(b.Course, 1, "mine", time.Now()))
	other, err := b.Store.AddLearnerToken(t.Context(), "Bob", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Store.Revoke(t.Context(), "Bob"); err != nil {
		t.Fatal(err)
	}
	reads := []string{"/", "/events", "/cell/1/1", "/export/csv", "/export/json"}
	for name, tc := range map[string]struct {
		token       string
		read, write int
	}{
		"nobody":      {"", http.StatusUnauthorized, http.StatusUnauthorized},
		"a made-up":   {"labboard-aaaaaaaa-" + strings.Repeat("b", 26), http.StatusUnauthorized, http.StatusUnauthorized},
		"a learner":   {ada, http.StatusForbidden, http.StatusCreated},
		"a revoked":   {other.Reveal(), http.StatusUnauthorized, http.StatusUnauthorized},
		"instructors": {b.Instructor, http.StatusOK, http.StatusForbidden},
	} {
		for _, path := range reads {
			if path == "/events" && tc.read == http.StatusOK {
				continue // it does not end
			}
			got := ask(t, b, request{path: path, token: tc.token})
			if got.code != tc.read || tc.read != http.StatusOK && strings.Contains(got.body, "Ada") {
				t.Errorf("%s reads %s: %d %.80s", name, path, got.code, got.body)
			}
		}
		if got := ask(t, b, post(t, b, tc.token, "by-"+strconv.Itoa(len(name)))); got.code != tc.write {
			t.Errorf("%s writes: %d %s", name, got.code, got.body)
		}
	}
	if n := kept(t, b); n != 2 {
		t.Errorf("%d results are kept, want the learner's two", n)
	}
}

func TestAResultIsTakenOnceAndOnlyWhenItIsOne(t *testing.T) {
	b := serve(t)
	ada := b.Learner(t, "Ada")
	good := post(t, b, ada, "run-1")
	with := func(change func(*request)) request {
		r := good
		change(&r)
		return r
	}
	for _, tc := range []struct {
		name string
		r    request
		want int
	}{
		{"the first time", good, http.StatusCreated},
		{"again", good, http.StatusOK},
		{"no JSON", with(func(r *request) { r.body = "{" }), http.StatusUnprocessableEntity},
		{"a form", with(func(r *request) { r.header = []string{"Content-Type: application/x-www-form-urlencoded"} }), http.StatusUnsupportedMediaType},
		{"text", with(func(r *request) { r.header = []string{"Content-Type: text/plain"} }), http.StatusUnsupportedMediaType},
		{"too large", with(func(r *request) { r.body += strings.Repeat(" ", room.SizeLimit) }), http.StatusRequestEntityTooLarge},
		{"too large when it is written anew", with(func(r *request) {
			r.body = strings.TrimSuffix(r.body, "}") + `,"trace":"` + strings.Repeat("<", room.SizeLimit/5) + `"}`
		}), http.StatusUnprocessableEntity},
		{"another method", with(func(r *request) { r.method = http.MethodPut }), http.StatusMethodNotAllowed},
	} {
		if got := ask(t, b, tc.r); got.code != tc.want {
			t.Errorf("%s: %d %s", tc.name, got.code, got.body)
		}
	}
	if n := kept(t, b); n != 1 {
		t.Errorf("%d results are kept", n)
	}
}

// One learner in a loop must not keep the others from being heard.
func TestWhoSendsTooFastWaits(t *testing.T) { synctest.Test(t, testWhoSendsTooFastWaits) }

func testWhoSendsTooFastWaits(t *testing.T) {
	b, _, _ := serveInMemory(t)
	ada, bob := b.Learner(t, "Ada"), b.Learner(t, "Bob")
	waits := 0
	for i := range 60 {
		got := ask(t, b, post(t, b, ada, "run-"+strconv.Itoa(i)))
		switch got.code {
		case http.StatusCreated:
		case http.StatusTooManyRequests:
			waits++
			if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 5 {
				t.Fatalf("Retry-After: %q", got.header.Get("Retry-After"))
			}
		default:
			t.Fatalf("%d %s", got.code, got.body)
		}
	}
	if waits != 30 {
		t.Errorf("%d of 60 had to wait; thirty at once are free", waits)
	}
	if got := ask(t, b, post(t, b, bob, "run-1")); got.code != http.StatusCreated {
		t.Errorf("another learner: %d", got.code)
	}
}

// A web page elsewhere can point its own name at 127.0.0.1, and send forms.
func TestPagesElsewhereGetNothing(t *testing.T) {
	b := serve(t)
	for host, want := range map[string]int{
		"": http.StatusOK, "localhost": http.StatusOK, "192.168.1.5:80": http.StatusOK, "[::1]:80": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest, "127.0.0.1.evil.example:80": http.StatusMisdirectedRequest,
	} {
		if got := ask(t, b, request{path: "/", token: b.Instructor, host: host}); got.code != want {
			t.Errorf("host %q: %d", host, got.code)
		}
	}
	form := request{method: http.MethodPost, path: "/login", body: "token=" + url.QueryEscape(b.Instructor), header: []string{"Content-Type: application/x-www-form-urlencoded"}}
	for header, want := range map[string]int{
		"Sec-Fetch-Site: cross-site": http.StatusForbidden, "Origin: http://evil.example": http.StatusForbidden,
		"Sec-Fetch-Site: same-origin": http.StatusSeeOther,
	} {
		r := form
		r.header = append(r.header, header)
		if got := ask(t, b, r); got.code != want {
			t.Errorf("%s: %d", header, got.code)
		}
	}
}

func TestTheBrowserIsToldToBeCareful(t *testing.T) {
	b := serve(t)
	for _, r := range []request{{path: "/"}, {path: "/", token: b.Instructor}, {path: "/assets/board.js"}, {path: "/nothing"}, {path: "/", host: "evil.example"}} {
		got := ask(t, b, r)
		policy := got.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", r.path, policy)
		}
		want := map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
		for name, value := range want {
			if got.header.Get(name) != value {
				t.Errorf("%s: %s is %q", r.path, name, got.header.Get(name))
			}
		}
		if strings.Contains(got.body, "<script>") || strings.Contains(got.body, "style=") || strings.Contains(got.body, "onclick=") {
			t.Errorf("%s has something inline", r.path)
		}
	}
	if got := ask(t, b, request{path: "/", token: b.Instructor}); got.header.Get("Cache-Control") != "no-store" {
		t.Error("the room may be kept in a cache")
	}
}

func TestTheInstructorLogsInAndOut(t *testing.T) {
	b := serve(t)
	login := func(token string) answer {
		return ask(t, b, request{
			method: http.MethodPost, path: "/login", body: "token=" + url.QueryEscape(token),
			header: []string{"Content-Type: application/x-www-form-urlencoded"},
		})
	}
	for name, token := range map[string]string{"nothing": "", "a learner's": b.Learner(t, "Ada"), "made up": "labboard-aaaaaaaa-" + strings.Repeat("b", 26)} {
		if got := login(token); got.code != http.StatusUnauthorized || got.header.Get("Set-Cookie") != "" || !strings.Contains(got.body, `role="alert"`) {
			t.Errorf("%s: %d %s", name, got.code, got.header.Get("Set-Cookie"))
		}
	}
	got := login(b.Instructor)
	cookie := got.header.Get("Set-Cookie")
	if got.code != http.StatusSeeOther || got.header.Get("Location") != "/" {
		t.Errorf("%d to %q", got.code, got.header.Get("Location"))
	}
	for _, part := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %q is not %s", cookie, part)
		}
	}
	name, _, _ := strings.Cut(cookie, "=")
	if !strings.HasSuffix(b.URL, ":"+strings.TrimPrefix(name, "lab-board-")) {
		t.Errorf("the cookie %s of %s would log another board out", name, b.URL)
	}
	pair, _, _ := strings.Cut(cookie, ";")
	if got := ask(t, b, request{path: "/", header: []string{"Cookie: " + pair}}); got.code != http.StatusOK {
		t.Errorf("with the cookie: %d", got.code)
	}
	if got := ask(t, b, request{method: http.MethodPost, path: "/logout"}); !strings.Contains(got.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logged out with %q", got.header.Get("Set-Cookie"))
	}
}

// event is one that a browser gets.
type event struct {
	id   string
	data struct {
		Rows []struct {
			Name  string
			Cells []struct{ Lab, State, Run any }
		}
		Order []int64
	}
}

func (e event) names() []string {
	all := []string{}
	for _, row := range e.data.Rows {
		all = append(all, row.Name)
	}
	return all
}

// follow streams events to a channel.
func follow(t *testing.T, b *boardtest.Board, last string) <-chan event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.Instructor)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); resp.Body.Close() })
	events := make(chan event, 100)
	go func() {
		var e event
		lines := bufio.NewScanner(resp.Body)
		for lines.Buffer(nil, 1<<20); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				e = event{id: value}
			case "data":
				if err := json.Unmarshal([]byte(value), &e.data); err != nil {
					t.Error(err)
				}
				events <- e
			}
		}
	}()
	return events
}

func next(t *testing.T, events <-chan event) event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event came")
		return event{}
	}
}

// A browser that was away gets what it missed, and not the whole room.
func TestAStreamGoesOnWhereItWas(t *testing.T) {
	b := serve(t)
	ada, bob := b.Learner(t, "Ada"), b.Learner(t, "Bob")
	b.Send(t, ada, boardtest.Result(b.Course, 1, "a-1", time.Now()))
	stream := follow(t, b, "")
	e := next(t, stream)
	if diff := cmp.Diff([]string{"Ada", "Bob"}, e.names()); diff != "" || len(e.data.Order) != 2 {
		t.Errorf("a new browser: %s, order %v", diff, e.data.Order)
	}
	b.Send(t, bob, boardtest.Result(b.Course, 1, "b-1", time.Now()))
	e2 := next(t, stream)
	if diff := cmp.Diff([]string{"Bob"}, e2.names()); diff != "" || e2.id == e.id || len(e2.data.Order) != 0 {
		t.Errorf("one result: %s, order %v", diff, e2.data.Order)
	}
	b.Send(t, ada, boardtest.Result(b.Course, 2, "a-2", time.Now()))
	if diff := cmp.Diff([]string{"Ada", "Bob"}, next(t, follow(t, b, e.id)).names()); diff != "" {
		t.Errorf("after %s: %s", e.id, diff)
	}
	if diff := cmp.Diff([]string{"Ada"}, next(t, follow(t, b, e2.id)).names()); diff != "" {
		t.Errorf("after %s: %s", e2.id, diff)
	}
	for _, unknown := range []string{"other-" + strings.Split(e2.id, "-")[1], "nonsense", strings.Split(e2.id, "-")[0] + "-999999"} {
		if diff := cmp.Diff([]string{"Ada", "Bob"}, next(t, follow(t, b, unknown)).names()); diff != "" {
			t.Errorf("after %s of another process: %s", unknown, diff)
		}
	}
}

// Another learner's result is no history of this one's.
func TestACellShowsItsOwnResults(t *testing.T) {
	b := serve(t)
	ada, bob := b.Learner(t, "Ada"), b.Learner(t, "Bob")
	b.Send(t, ada, boardtest.Result(b.Course, 1, "a-1", time.Now())) // result 1
	b.Send(t, bob, boardtest.Result(b.Course, 1, "b-1", time.Now())) // result 2
	get := func(path string) answer {
		return ask(t, b, request{path: path, token: b.Instructor, header: []string{"Accept: application/json"}})
	}
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(get("/cell/2/1").body, "pass") && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond) // the state in memory follows the store
	}
	for path, want := range map[string]int{
		"/cell/1/1": 200, "/cell/1/1?result=1": 200, "/cell/1/7": 200,
		"/cell/1/1?result=2": 404, "/cell/1/2?result=1": 404, "/cell/1/1?result=x": 404, "/cell/3/1": 404, "/cell/1/99": 404, "/cell/1/0": 404, "/cell/x/1": 404,
	} {
		if got := get(path); got.code != want {
			t.Errorf("%s: %d %.80s", path, got.code, got.body)
		}
	}
	if got := get("/cell/1/1"); !strings.Contains(got.body, `"title":"Ada, lab 1`) || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %.200s", got.header.Get("Content-Type"), got.body)
	}
	if got := ask(t, b, request{path: "/cell/1/1", token: b.Instructor}); !strings.Contains(got.body, "<!doctype html>") {
		t.Errorf("without scripts: %.200s", got.body)
	}
}

// Pages that are open must not keep the instructor waiting at Ctrl-C, nor the connections that browsers open ahead.
func TestABoardEndsAtOnceWithPagesOpen(t *testing.T) {
	synctest.Test(t, testABoardEndsAtOnceWithPagesOpen)
}

func testABoardEndsAtOnceWithPagesOpen(t *testing.T) {
	b, dial, stop := serveInMemory(t)
	b.Learner(t, "Ada")
	spare, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer spare.Close()
	next(t, follow(t, b, ""))
	begun := time.Now()
	stop()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// Without scripts nobody is told later what another process, such as `classroom board token add`, has just changed.
func TestAPageShowsWhatTheStoreHasNow(t *testing.T) {
	b := serve(t)
	for i := range 20 {
		name := "Ada" + strconv.Itoa(i)
		b.Learner(t, name)
		if a := ask(t, b, request{path: "/", token: b.Instructor}); a.code != http.StatusOK || !strings.Contains(a.body, ">"+name+"<") {
			t.Fatalf("%s is not on a page that was asked for later (%d)", name, a.code)
		}
	}
}
