package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/board/boardtest"
	"github.com/example/operator-lab/labs/internal/board/store"
)

// form is one of the page's, as a browser with the instructor's token sends it.
func form(token, path string, fields ...string) request {
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	return request{method: http.MethodPost, path: path, token: token, body: values.Encode(), header: []string{
		"Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: same-origin", "Accept: application/json",
	}}
}

// letter is a message as a learner gets it.
type letter struct {
	ID, Kind, Text, Answer string
	Lab                    int
	All                    bool
}

func (l letter) String() string {
	return fmt.Sprintf("%s %s%d all=%v %s", l.Kind, l.Text, l.Lab, l.All, l.Answer)
}

// letters are what a learner gets.
func letters(t *testing.T, b *boardtest.Board, token string) (list []letter, lines []string) {
	t.Helper()
	got := ask(t, b, request{path: "/api/v1/messages", token: token})
	var answer struct{ Messages []letter }
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.code != http.StatusOK {
		t.Fatalf("%d %s: %v", got.code, got.body, err)
	}
	for _, l := range answer.Messages {
		lines = append(lines, l.String())
	}
	return answer.Messages, lines
}

func receipt(token, id, answer string) request {
	return request{
		method: http.MethodPost, path: "/api/v1/messages/" + id + "/receipts", token: token,
		body: `{"answer":"` + answer + `"}`, header: []string{"Content-Type: application/json"},
	}
}

func TestALearnerGetsWhatIsForThemAndForAll(t *testing.T) {
	b := serve(t)
	ada, bob := b.Learner(t, "Ada"), b.Learner(t, "Bob")
	b.Say(t, "kind", "hint", "to", "all", "text", "to both ")
	b.Say(t, "kind", "hint", "to", "1", "text", "to Ada ")
	b.Say(t, "kind", "step", "lab", "4")
	b.Say(t, "kind", "step", "lab", "5")
	hers, lines := letters(t, b, ada)
	if diff := cmp.Diff([]string{"hint to both0 all=true ", "hint to Ada0 all=false ", "step 5 all=true "}, lines); diff != "" {
		t.Error(diff)
	}
	_, lines = letters(t, b, bob)
	if diff := cmp.Diff([]string{"hint to both0 all=true ", "step 5 all=true "}, lines); diff != "" {
		t.Error(diff)
	}

	// What is taken back is not brought to anybody any more.
	if got := ask(t, b, form(b.Instructor, "/messages/"+hers[0].ID+"/withdraw")); got.code != http.StatusOK {
		t.Errorf("withdraw: %d %s", got.code, got.body)
	}
	if _, lines = letters(t, b, bob); len(lines) != 1 {
		t.Errorf("Bob gets %q", lines)
	}
	if got := ask(t, b, receipt(bob, hers[0].ID, "seen")); got.code != http.StatusNotFound {
		t.Errorf("a receipt for what was taken back: %d", got.code)
	}
	if got := ask(t, b, form(b.Instructor, "/messages/"+hers[0].ID+"/withdraw")); got.code != http.StatusNotFound {
		t.Errorf("taken back twice: %d", got.code)
	}
}

// Who may say, hear and answer what.
func TestATokenSaysAndHearsOnlyWhatItMay(t *testing.T) {
	b := serve(t)
	ada, bob := b.Learner(t, "Ada"), b.Learner(t, "Bob")
	b.Say(t, "kind", "hint", "to", "1", "text", "for Ada's eyes")
	hers, _ := letters(t, b, ada)
	for name, tc := range map[string]struct {
		token             string
		send, read, reply int
	}{
		"nobody":        {"", http.StatusUnauthorized, http.StatusUnauthorized, http.StatusUnauthorized},
		"the learner":   {ada, http.StatusForbidden, http.StatusOK, http.StatusOK},
		"another one":   {bob, http.StatusForbidden, http.StatusOK, http.StatusNotFound},
		"an instructor": {b.Instructor, http.StatusOK, http.StatusForbidden, http.StatusForbidden},
	} {
		sent := ask(t, b, form(tc.token, "/messages", "kind", "hint", "to", "2", "text", "by "+name))
		if sent.code != tc.send {
			t.Errorf("%s sends: %d %.80s", name, sent.code, sent.body)
		}
		got := ask(t, b, request{path: "/api/v1/messages", token: tc.token})
		if got.code != tc.read || name != "the learner" && strings.Contains(got.body, "Ada's eyes") {
			t.Errorf("%s reads: %d %s", name, got.code, got.body)
		}
		if got := ask(t, b, receipt(tc.token, hers[0].ID, "seen")); got.code != tc.reply {
			t.Errorf("%s answers: %d %s", name, got.code, got.body)
		}
	}
	withdrawn := ask(t, b, form(ada, "/messages/"+hers[0].ID+"/withdraw"))
	if _, lines := letters(t, b, ada); withdrawn.code != http.StatusForbidden || len(lines) != 1 {
		t.Errorf("a learner takes a message back: %d, %q is left", withdrawn.code, lines)
	}
	if _, lines := letters(t, b, bob); len(lines) != 1 || !strings.Contains(lines[0], "an instructor") {
		t.Errorf("Bob hears %q", lines)
	}
	// A page elsewhere cannot have the instructor's browser say something.
	foreign := form(b.Instructor, "/messages", "kind", "hint", "to", "all", "text", "x")
	foreign.header[1] = "Sec-Fetch-Site: cross-site"
	if got := ask(t, b, foreign); got.code != http.StatusForbidden {
		t.Errorf("from another site: %d", got.code)
	}
}

func TestWhatCannotBeSaidIsRefused(t *testing.T) {
	b := serve(t)
	b.Learner(t, "Ada")
	for name, tc := range map[string]struct {
		want   int
		fields []string
	}{
		"nothing":        {422, nil},
		"no text":        {422, []string{"kind", "hint", "to", "all", "text", " \r\n"}},
		"to nobody":      {422, []string{"kind", "hint", "text", "x"}},
		"to a name":      {422, []string{"kind", "hint", "to", "Ada", "text", "x"}},
		"to a stranger":  {404, []string{"kind", "hint", "to", "99", "text", "x"}},
		"an escape":      {422, []string{"kind", "hint", "to", "all", "text", "\x1b[2J"}},
		"too long":       {422, []string{"kind", "hint", "to", "all", "text", strings.Repeat("x", store.TextLimit+1)}},
		"far too long":   {422, []string{"kind", "hint", "to", "all", "text", strings.Repeat("x", 16<<10)}},
		"lab 8 of 7":     {422, []string{"kind", "step", "lab", "8"}},
		"no lab":         {422, []string{"kind", "step", "lab", "five"}},
		"another kind":   {422, []string{"kind", "order", "to", "all", "text", "x"}},
		"within a limit": {200, []string{"kind", "hint", "to", "all", "text", strings.Repeat("ä", store.TextLimit)}},
	} {
		if got := ask(t, b, form(b.Instructor, "/messages", tc.fields...)); got.code != tc.want {
			t.Errorf("%s: %d %s", name, got.code, got.body)
		}
	}
	// Without scripts the same form brings the page back.
	plain := form(b.Instructor, "/messages", "kind", "hint", "to", "1", "text", "x")
	plain.header = plain.header[:2]
	if got := ask(t, b, plain); got.code != http.StatusSeeOther || got.header.Get("Location") != "/" {
		t.Errorf("without scripts: %d to %q", got.code, got.header.Get("Location"))
	}
	if got := ask(t, b, receipt(b.Learner(t, "Bob"), "x", strings.Repeat("y", 600<<10))); got.code != http.StatusRequestEntityTooLarge {
		t.Errorf("a receipt of half a megabyte: %d", got.code)
	}
}

// Somebody who waits for a save reads a hint when it is said, and not when they ask next.
func TestWhoWaitsHearsAtOnce(t *testing.T) { synctest.Test(t, testWhoWaitsHearsAtOnce) }

func testWhoWaitsHearsAtOnce(t *testing.T) {
	b, _, stop := serveInMemory(t)
	ada := b.Learner(t, "Ada")
	first := ask(t, b, request{path: "/api/v1/messages", token: ada})
	tag := first.header.Get("ETag")
	wait := func(seconds string) <-chan answer {
		got := make(chan answer, 1)
		go func() {
			got <- ask(t, b, request{path: "/api/v1/messages?wait=" + seconds, token: ada, header: []string{"If-None-Match: " + tag}})
		}()
		return got
	}
	if got := <-wait("1"); got.code != http.StatusNotModified || got.header.Get("ETag") != tag {
		t.Errorf("nothing was said: %d", got.code)
	}
	waiting := wait("20")
	time.Sleep(time.Second / 10) // not just before a look
	begun := time.Now()
	b.Say(t, "kind", "hint", "to", "1", "text", "look up")
	if got := <-waiting; got.code != http.StatusOK || !strings.Contains(got.body, "look up") || got.header.Get("ETag") == tag {
		t.Errorf("%d %s", got.code, got.body)
	}
	if took := time.Since(begun); took > time.Second/2 { // the board's own look comes once a second
		t.Errorf("it took %v", took)
	}

	// Not more than some at once: a learner in a loop must not take all connections.
	tag = ask(t, b, request{path: "/api/v1/messages", token: ada}).header.Get("ETag")
	all := make(chan answer, 5)
	for range cap(all) {
		one := wait("20")
		go func() { all <- <-one }()
	}
	time.Sleep(time.Second)
	synctest.Wait()
	if n := len(all); n != 2 { // of five, three wait
		t.Fatalf("%d of 5 do not wait, want the 2 who have no seat", n)
	}
	// And those who wait do not keep the board from ending.
	begun = time.Now()
	stop()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the board ends after %v", took)
	}
	for range cap(all) {
		<-all
	}
}

// The page says who has followed; whoever is there by their own work need not say anything.
func TestThePageSaysWhoHasSeenAndFollowed(t *testing.T) {
	b := serve(t)
	ada, bob, eve := b.Learner(t, "Ada"), b.Learner(t, "Bob"), b.Learner(t, "Eve")
	b.Send(t, eve, boardtest.Result(b.Course, 5, "e-5", time.Now()))
	b.Say(t, "kind", "hint", "to", "all", "text", "look <b>up</b>")
	b.Say(t, "kind", "step", "lab", "5")
	list, _ := letters(t, b, ada)
	hint, step := list[0].ID, list[1].ID
	for _, r := range []request{receipt(ada, hint, "seen"), receipt(ada, step, "seen"), receipt(ada, step, "joined"), receipt(ada, step, "seen"), receipt(bob, step, "stays")} {
		if got := ask(t, b, r); got.code != http.StatusOK {
			t.Fatalf("%s: %d %s", r.path, got.code, got.body)
		}
	}
	if again, _ := letters(t, b, ada); again[1].Answer != "joined" {
		t.Errorf("the board remembers %q", again[1].Answer)
	}
	b.Learner(t, "Zoe")
	stream := follow(t, b, "")
	want := "Go on with lab 5: " + b.Course.Labs[4].Title + ": 2 of 4 are at lab 5; waiting for: Zoe; staying where they are: Bob"
	for {
		var got []string
		for _, m := range next(t, stream).data.Summary.Messages {
			got = append(got, m.Text+": "+m.State)
		}
		if len(got) == 2 && got[0] == want && got[1] == "look <b>up</b>: seen by 1 of 4" {
			break
		}
		t.Logf("%q", got) // the board looks once a second
	}
	if page := ask(t, b, request{path: "/", token: b.Instructor}).body; !strings.Contains(page, "look &lt;b&gt;up") || strings.Contains(page, "<b>up") {
		t.Error("the page does not show the hint, or takes it for HTML")
	}
}

// Another process says something: lab board send.
func TestWhatTheTerminalSaysIsHeard(t *testing.T) {
	b := serve(t)
	ada := b.Learner(t, "Ada")
	tag := ask(t, b, request{path: "/api/v1/messages", token: ada}).header.Get("ETag")
	m := store.Message{Kind: store.Hint, Text: "from the terminal"}
	if err := b.Store.AddMessage(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	got := ask(t, b, request{path: "/api/v1/messages?wait=20", token: ada, header: []string{"If-None-Match: " + tag}})
	if got.code != http.StatusOK || !strings.Contains(got.body, "from the terminal") {
		t.Errorf("%d %s", got.code, got.body)
	}
}
