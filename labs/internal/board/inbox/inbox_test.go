package inbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/board/inbox"
	"github.com/example/operator-lab/labs/internal/board/outbox"
)

// board stands in for one: it has messages, and notes the receipts.
type board struct {
	*httptest.Server
	mu       sync.Mutex
	messages []inbox.Message
	said     chan struct{} // closed when messages are others
	receipts []string
	code     int // of all its answers, when it is not 0
	asked    int
	token    string
}

func newBoard(t *testing.T, messages ...inbox.Message) *board {
	t.Helper()
	b := &board{messages: messages, said: make(chan struct{})}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	b.token = r.Header.Get("Authorization")
	if b.code != 0 {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(b.code)
		return
	}
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		b.receipts = append(b.receipts, r.URL.Path+" "+string(body))
		return
	}
	tag := `"` + string(rune('a'+len(b.messages))) + `"`
	if r.Header.Get("If-None-Match") == tag {
		said := b.said
		b.mu.Unlock()
		select {
		case <-said:
		case <-r.Context().Done():
		}
		b.mu.Lock()
		tag = `"` + string(rune('a'+len(b.messages))) + `"`
	}
	w.Header().Set("ETag", tag)
	_ = json.NewEncoder(w).Encode(map[string]any{"messages": b.messages})
}

func (b *board) say(m inbox.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, m)
	close(b.said)
	b.said = make(chan struct{})
}

func (b *board) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.receipts...)
}

// configure writes the handout's file, and returns the state folder.
func configure(t *testing.T, url string) string {
	t.Helper()
	t.Setenv(outbox.ConfigVariable, "")
	state := t.TempDir()
	if err := outbox.WriteConfig(state, config(url, "Ada")); err != nil {
		t.Fatal(err)
	}
	return state
}

func config(url, learner string) outbox.Config {
	return outbox.Config{URL: url, Token: "labboard-secret", Learner: learner}
}

func hint(id, text string) inbox.Message {
	return inbox.Message{ID: id, Kind: inbox.Hint, Text: text, Sent: time.Now()}
}

func texts(messages []inbox.Message) []string {
	all := []string{}
	for _, m := range messages {
		all = append(all, m.Text)
	}
	return all
}

// listen gives what is heard. The fake clock stands still while the board's answer is on its way: however busy the
// machine, it comes within the limit.
func listen(t *testing.T, state string) (heard []inbox.Message) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { heard = inbox.Listen(t.Context(), state)() })
	return heard
}

func TestAMessageIsShownOnce(t *testing.T) {
	known := hint("c", "seen elsewhere")
	known.Answer = inbox.Seen
	b := newBoard(t, hint("a", "one"), hint("b", "two"), known)
	state := configure(t, b.URL)
	if diff := cmp.Diff([]string{"one", "two"}, texts(listen(t, state))); diff != "" {
		t.Error(diff)
	}
	receipts := []string{`/api/v1/messages/a/receipts {"answer":"seen"}`, `/api/v1/messages/b/receipts {"answer":"seen"}`}
	if diff := cmp.Diff(receipts, b.heard()); diff != "" || b.token != "Bearer labboard-secret" {
		t.Error(diff, b.token)
	}
	b.say(hint("d", "three"))
	if diff := cmp.Diff([]string{"three"}, texts(listen(t, state))); diff != "" {
		t.Error(diff)
	}
	// Whoever uses another handout in this checkout has not seen them.
	other := inbox.Open(state, config(b.URL, "Bob"))
	messages, err := other.Ask(t.Context())
	if err != nil || len(other.Fresh(messages)) != 3 {
		t.Errorf("another learner: %v, %v", messages, err)
	}
}

// A check and a watch hear the same at the same moment.
func TestOfTwoThatHearTheSameOneShowsIt(t *testing.T) {
	messages := []inbox.Message{hint("a", "one")}
	state := t.TempDir()
	shown := make(chan int, 8)
	for range cap(shown) {
		go func() { shown <- len(inbox.Open(state, config("http://127.0.0.1:1", "Ada")).Fresh(messages)) }()
	}
	all := 0
	for range cap(shown) {
		all += <-shown
	}
	if all != 1 {
		t.Errorf("it is shown %d times", all)
	}
}

// The Wi-Fi was away when the board should have heard that a message was shown.
func TestAReceiptThatWasLostIsGivenAgain(t *testing.T) {
	b := newBoard(t, hint("a", "one"))
	state := configure(t, b.URL)
	box := inbox.Open(state, config(b.URL, "Ada"))
	messages, err := box.Ask(t.Context())
	if err != nil || len(box.Fresh(messages)) != 1 {
		t.Fatal(messages, err)
	}
	if fresh := listen(t, state); len(fresh) != 0 || len(b.heard()) != 1 {
		t.Errorf("shown %v, receipts %q", fresh, b.heard())
	}
}

// A terminal does what it is told; whoever answers at the board's address must not tell it anything.
func TestATerminalIsOnlyGivenText(t *testing.T) {
	long := hint("long", "x")
	long.ID = strings.Repeat("a", 65)
	b := newBoard(t,
		hint("a", "\x1b[31mred\x1b[0m and \x1b]0;a title\x07plain\x1b]8;;http://x\x1b\\!"), hint("b", "\u009b2Jgone\u009d0;title\u009c."),
		hint("c", "a\u202eb\x00c\x07d\re\tf\n\ng"), hint("d", "\x1bcreset \x1b"), hint("e", "日本 ü 👋"), hint("f", "\x1b[2J"), hint("g", "a\x1bP1;2|dcs"),
		hint("../../x", "a path"), hint("A B", "no name"), long, inbox.Message{ID: "h", Kind: "order", Text: "x"}, inbox.Message{ID: "i", Kind: inbox.Step},
	)
	messages, err := inbox.Open(t.TempDir(), config(b.URL, "Ada")).Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"red and plain!", "gone.", "abcde f\n\ng", "reset", "日本 ü 👋", "a"}
	if diff := cmp.Diff(want, texts(messages)); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutABoardNobodyIsAsked(t *testing.T) {
	t.Setenv(outbox.ConfigVariable, "")
	state := t.TempDir()
	if got := listen(t, state); len(got) != 0 {
		t.Errorf("heard %v", got)
	}
	if entries, err := os.ReadDir(state); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestWhatABoardSaysInsteadOfMessages(t *testing.T) {
	for code, says := range map[int]string{401: "token of Ada", 404: "older lab", 429: "429", 500: "500", 307: "307"} {
		b := newBoard(t)
		b.code = code
		if _, err := inbox.Open(t.TempDir(), config(b.URL, "Ada")).Ask(t.Context()); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d: %v", code, err)
		}
		if b.asked != 1 {
			t.Errorf("%d: the token went elsewhere, too", code)
		}
	}
}

// Who waits for a save reads a hint when it is said.
func TestAFollowerHearsAtOnceAndOnce(t *testing.T) {
	b := newBoard(t, hint("a", "before"))
	state := configure(t, b.URL)
	told := make(chan string, 10)
	go inbox.Open(state, config(b.URL, "Ada")).Follow(t.Context(), func(m inbox.Message) { told <- m.Text })
	for _, want := range []string{"before", "meanwhile"} {
		select {
		case got := <-told:
			if got != want {
				t.Errorf("told %q, want %q", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%q was not told", want)
		}
		if want == "before" {
			b.say(hint("b", "meanwhile"))
		}
	}
	if len(told) > 0 {
		t.Errorf("and %q", <-told)
	}
}

// A token that has ended, and a board of an older lab, are not asked again and again.
func TestAFollowerGoesWhenItIsTurnedAway(t *testing.T) {
	b := newBoard(t)
	b.code = http.StatusUnauthorized
	inbox.Open(t.TempDir(), config(b.URL, "Ada")).Follow(t.Context(), func(inbox.Message) {})
	if b.asked != 1 {
		t.Errorf("asked %d times", b.asked)
	}
}

func TestWhatWasShownIsNobodyElsesBusiness(t *testing.T) {
	state := t.TempDir()
	inbox.Open(state, config("http://127.0.0.1:1", "Ada")).Fresh([]inbox.Message{hint("a", "one")})
	names, err := filepath.Glob(filepath.Join(state, "inbox", "*", "*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if data, err := os.ReadFile(names[0]); err != nil || len(data) != 0 {
		t.Errorf("%q is kept: %v", data, err)
	}
}
