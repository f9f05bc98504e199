package outbox_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/roomclient/outbox"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// board stands in for one: it answers with the status in turn, the last one for ever.
type board struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int
	got     []string // runs
	request *http.Request
	body    string
}

func newBoard(t *testing.T, answers ...int) *board {
	t.Helper()
	b := &board{answers: answers}
	b.Server = httptest.NewTLSServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, _ := io.ReadAll(r.Body)
	var result verdict.Result
	_ = json.Unmarshal(data, &result)
	code := b.answers[0]
	if len(b.answers) > 1 {
		b.answers = b.answers[1:]
	}
	if code < 300 {
		b.got = append(b.got, result.Run)
	}
	b.request, b.body = r, string(data)
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, `{"error":"said the board"}`)
}

// config is what a handout says of the board.
func (b *board) config() roomclient.Config {
	return roomclient.Config{URL: b.URL, Key: roomclient.KeyOf(b.Certificate()), Token: "labboard-secret", Learner: "Ada"}
}

// nobody is a board that does not answer.
func nobody() roomclient.Config {
	return roomclient.Config{URL: "https://127.0.0.1:1", Key: "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", Token: "x"}
}

// configure writes the handout's file, and returns the state folder.
func configure(t *testing.T, c roomclient.Config) string {
	t.Helper()
	t.Setenv(roomclient.ConfigVariable, "")
	state := t.TempDir()
	if err := roomclient.WriteConfig(state, c); err != nil {
		t.Fatal(err)
	}
	return state
}

func result(run string) []*verdict.Result {
	return []*verdict.Result{{Schema: 1, Lab: 4, Verdict: verdict.Fail, Run: run, Started: time.Now()}}
}

// report reports, and gives what the learner is told. The fake clock stands still while the board's answer is on its
// way: however busy the machine, it comes within the limit.
func report(t *testing.T, state string, results []*verdict.Result) []string {
	t.Helper()
	told := []string{}
	synctest.Test(t, func(t *testing.T) {
		outbox.Report(t.Context(), state, results, func(line string) { told = append(told, line) })()
	})
	return told
}

// files are those that wait.
func files(t *testing.T, state string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(state, "outbox", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAResultReachesTheBoard(t *testing.T) {
	b := newBoard(t, http.StatusCreated)
	c := b.config()
	c.URL += "/"
	state := configure(t, c)
	if told := report(t, state, result("r1")); len(told) != 0 {
		t.Errorf("the learner is bothered with %q", told)
	}
	if diff := cmp.Diff([]string{"r1"}, b.got); diff != "" {
		t.Error(diff)
	}
	h := b.request.Header
	if b.request.URL.Path != "/api/v1/results" || h.Get("Authorization") != "Bearer labboard-secret" || h.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", b.request.URL, h)
	}
	if at, err := http.ParseTime(h.Get("Date")); err != nil || !at.Equal(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the board cannot tell how late it is here: %q, want the time of the fake clock", h.Get("Date"))
	}
	if left := files(t, state); len(left) != 0 {
		t.Errorf("%v wait still", left)
	}
}

// The Wi-Fi comes and goes; the order stays.
func TestWhatWasNotSentIsSentByTheNextCheck(t *testing.T) {
	b := newBoard(t, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusCreated, http.StatusOK, http.StatusCreated)
	state := configure(t, b.config())
	told := report(t, state, result("20261121-100000-AAAA"))
	if len(told) != 1 || !strings.Contains(told[0], "1 of your results wait") {
		t.Errorf("the board is down: %q", told)
	}
	if told = report(t, state, result("20261121-100100-BBBB")); len(told) != 1 || !strings.Contains(told[0], "2 of your results wait") {
		t.Errorf("the board is busy: %q", told)
	}
	if told = report(t, state, result("20261121-100200-CCCC")); len(told) != 0 {
		t.Errorf("the board is back: %q", told)
	}
	want := []string{"20261121-100000-AAAA", "20261121-100100-BBBB", "20261121-100200-CCCC"}
	if diff := cmp.Diff(want, b.got); diff != "" || len(files(t, state)) != 0 {
		t.Errorf("%s, %v wait still", diff, files(t, state))
	}
}

// One result that no board takes must not hold up the others for ever.
func TestAResultThatNoBoardTakesDoesNotWait(t *testing.T) {
	b := newBoard(t, http.StatusUnprocessableEntity, http.StatusCreated)
	state := configure(t, b.config())
	told := report(t, state, append(result("r1"), result("r2")...))
	if len(told) != 1 || !strings.Contains(told[0], "said the board") || len(b.got) != 1 || len(files(t, state)) != 0 {
		t.Errorf("told %q, sent %v, waiting %v", told, b.got, files(t, state))
	}
}

func TestATokenThatEndedIsSaidAndTheResultWaits(t *testing.T) {
	b := newBoard(t, http.StatusUnauthorized)
	state := configure(t, b.config())
	if told := report(t, state, result("r1")); len(told) != 1 || !strings.Contains(told[0], "token of Ada") || len(files(t, state)) != 1 {
		t.Errorf("told %q, waiting %v", told, files(t, state))
	}
}

// An interrupt after the answer does not lose it: the result is a verdict like any other.
func TestAnInterruptedCheckStillReports(t *testing.T) {
	b := newBoard(t, http.StatusCreated)
	state := configure(t, b.config())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		outbox.Report(ctx, state, result("r1"), func(string) {})()
	})
	if len(b.got) != 1 {
		t.Error("nothing was sent")
	}
}

// A token goes to its board, and to nobody whom that names.
func TestATokenDoesNotFollowARedirect(t *testing.T) {
	b := newBoard(t, http.StatusTemporaryRedirect)
	state := configure(t, b.config())
	if told := report(t, state, result("r1")); len(told) != 1 || b.request.URL.Path != "/api/v1/results" {
		t.Errorf("told %q, asked for %s", told, b.request.URL)
	}
}

func TestWithoutABoardNothingHappens(t *testing.T) {
	t.Setenv(roomclient.ConfigVariable, "")
	state := t.TempDir()
	if told := report(t, state, result("r1")); len(told) != 0 {
		t.Errorf("told %q", told)
	}
	if entries, err := os.ReadDir(state); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A handout that is damaged is said, and the verdict stands.
func TestADamagedConfigurationIsSaid(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":       "{",
		"no address":    `{"key":"` + nobody().Key + `","token":"x"}`,
		"no token":      `{"url":"https://127.0.0.1:1","key":"` + nobody().Key + `"}`,
		"a path":        `{"url":"/etc","key":"` + nobody().Key + `","token":"x"}`,
		"no key":        `{"url":"https://127.0.0.1:1","token":"x"}`,
		"half a key":    `{"url":"https://127.0.0.1:1","key":"sha256//AAAA","token":"x"}`,
		"not encrypted": `{"url":"http://127.0.0.1:1","key":"` + nobody().Key + `","token":"x"}`,
	} {
		t.Setenv(roomclient.ConfigVariable, "")
		state := t.TempDir()
		if err := os.WriteFile(filepath.Join(state, roomclient.ConfigFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if told := report(t, state, result("r1")); len(told) != 1 || !strings.Contains(told[0], roomclient.ConfigFile) {
			t.Errorf("%s: told %q", name, told)
		}
	}
	t.Setenv(roomclient.ConfigVariable, filepath.Join(t.TempDir(), "nowhere.json"))
	if told := report(t, t.TempDir(), result("r1")); len(told) != 1 || !strings.Contains(told[0], "nowhere.json") {
		t.Errorf("LAB_BOARD names no file: told %q", told)
	}
}

func TestTheVariableNamesAnotherFile(t *testing.T) {
	b := newBoard(t, http.StatusCreated)
	elsewhere := configure(t, b.config())
	t.Setenv(roomclient.ConfigVariable, filepath.Join(elsewhere, roomclient.ConfigFile))
	if told := report(t, t.TempDir(), result("r1")); len(told) != 0 || len(b.got) != 1 {
		t.Errorf("told %q, sent %v", told, b.got)
	}
}

// The room knows a pseudonym; a path often has the name in it.
func TestNoPathOfThisMachineLeavesIt(t *testing.T) {
	b := newBoard(t, http.StatusCreated)
	state := configure(t, b.config())
	home := filepath.Join(t.TempDir(), "ada.lovelace")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	results := result("r1")
	results[0].Workspace, results[0].Artifacts = filepath.Join(home, "lab", "workspace"), filepath.Join(home, "lab", ".lab", "artifacts", "r1")
	results[0].Environment.Finding = "cannot write " + filepath.Join(home, ".cache", "x")
	results[0].Checks = []verdict.Check{{Seen: "in " + filepath.Join(home, "lab", "workspace", "main.go")}}
	report(t, state, results)
	if strings.Contains(b.body, "lovelace") || !strings.Contains(b.body, "main.go") {
		t.Error(b.body)
	}
	elsewhere := filepath.Join(t.TempDir(), "grace.hopper")
	results[0].Workspace, results[0].Checks[0].Seen = elsewhere, "in "+filepath.Join(elsewhere, "main.go")
	if report(t, state, results); strings.Contains(b.body, "hopper") || !strings.Contains(b.body, "main.go") {
		t.Error(b.body)
	}
	if !strings.Contains(results[0].Workspace, "hopper") {
		t.Error("the learner's own result was changed")
	}
}

func TestWhatWaitsIsNobodyElsesBusinessAndHasAnEnd(t *testing.T) {
	state := configure(t, nobody())
	box := outbox.Open(state, nobody())
	for i := range 205 {
		r := result("r")[0]
		r.Run = "20261121-1" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10)) + "00-AAAA"
		if err := box.Put([]*verdict.Result{r}); err != nil {
			t.Fatal(err)
		}
	}
	waiting := files(t, state)
	if len(waiting) != 200 || !strings.Contains(waiting[0], "20261121-1005") {
		t.Errorf("%d wait, the first is %s", len(waiting), waiting[0])
	}
	for path, want := range map[string]os.FileMode{
		waiting[0]: 0o600, filepath.Dir(waiting[0]): 0o700 | os.ModeDir, filepath.Join(state, roomclient.ConfigFile): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	// Another room's board does not get them, nor does the next learner send them.
	other := newBoard(t, http.StatusCreated)
	sameAddress := nobody()
	sameAddress.Key = other.config().Key
	another := nobody()
	another.Learner = "ben"
	for name, c := range map[string]roomclient.Config{"another": other.config(), "another at the same address": sameAddress, "another learner": another} {
		if left, err := outbox.Open(state, c).Flush(t.Context()); left != 0 || err != nil || len(other.got) != 0 {
			t.Errorf("%s: %d left, %v, sent %v", name, left, err, other.got)
		}
	}
}
