package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/certificate"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/roomclient/outbox"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// boardApp is an app in a small course.
func boardApp(t *testing.T) (a *app, out, progress *bytes.Buffer) {
	t.Helper()
	a, out, progress = newTestApp(t)
	a.Root = coursetest.New(t)
	a.State = filepath.Join(a.Root, ".lab")
	t.Setenv(roomclient.ConfigVariable, "")
	return a, out, progress
}

func TestTheBoardStaysOnThisMachineUnlessAsked(t *testing.T) {
	for _, tc := range []struct{ listen, address, want string }{
		{"127.0.0.1:0", "", "127.0.0.1:0"},
		{"localhost:7777", "", "localhost:7777"},
		{"[::1]:7777", "", "[::1]:7777"},
		{"127.0.0.1:7777", "192.168.1.5", "192.168.1.5:7777"},
		{"127.0.0.1:7777", "fd00::5", "[fd00::5]:7777"},
		{":7777", "", ""},
		{"0.0.0.0:7777", "", ""},
		{"192.168.1.5:7777", "", ""},
		{"some.host:7777", "", ""},
		{"127.0.0.1", "", ""},
		{"127.0.0.1:0", "some.host", ""},
	} {
		got, err := bindAddress(tc.listen, tc.address)
		if got != tc.want || tc.want == "" && exit.Code(err) != exit.UsageError {
			t.Errorf("--listen %s --address %q: %q, %v", tc.listen, tc.address, got, err)
		}
	}
}

func TestBoardRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for _, line := range []string{
		"board now", "board --listen 0.0.0.0:0", "board --stuck-tries -1", "board --expires 0s", "board token", "board token add",
		"board token add --expires -1h Ada", "board token revoke nobody", "board export --format pdf", "board export",
	} {
		a, _, _ := boardApp(t)
		if err := cli.Execute(t.Context(), newRootCommand(a), strings.Fields(line)); exit.Code(err) != exit.UsageError {
			t.Errorf("classroom %s: %v", line, err)
		}
	}
	a, _, _ := boardApp(t)
	if err := cli.Execute(t.Context(), newRootCommand(a), []string{"board", "token", "add", "a\nb"}); exit.Code(err) != exit.UsageError {
		t.Errorf("a name of two lines: %v", err)
	}
}

func TestTokensAreMadeListedAndEnded(t *testing.T) {
	a, out, _ := boardApp(t)
	lab := func(args ...string) string {
		t.Helper()
		out.Reset()
		if err := cli.Execute(t.Context(), newRootCommand(a), append([]string{"board", "token"}, args...)); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out.String()
	}
	if got := lab("list"); !strings.Contains(got, "classroom board token add NAME") {
		t.Errorf("an empty list says %q", got)
	}
	token := strings.TrimSpace(lab("add", "Ada", "--expires", "1h"))
	lab("add", "--instructor", "front desk")
	list := lab("list")
	for _, part := range []string{"Ada", "write", "front desk", "read", "good"} {
		if !strings.Contains(list, part) {
			t.Errorf("the list lacks %s:\n%s", part, list)
		}
	}
	if strings.Contains(list, token) || !strings.HasPrefix(token, "labboard-") {
		t.Errorf("the token %q is in the list:\n%s", token, list)
	}
	if got := lab("revoke", "Ada"); !strings.HasPrefix(got, "1 of the tokens of Ada") {
		t.Error(got)
	}
	if list = lab("list"); !strings.Contains(list, "revoked") {
		t.Error(list)
	}
	if info, err := os.Stat(filepath.Join(a.State, "board")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// synced lets a test read what a command prints while it runs.
type synced struct {
	lines chan string
}

func (s synced) Write(p []byte) (int, error) {
	s.lines <- string(p)
	return len(p), nil
}

// From a learner's check to the instructor's page and the records.
func TestACheckReachesTheBoard(t *testing.T) {
	a, _, progress := boardApp(t)
	printed := synced{make(chan string, 10)}
	a.Out = printed
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cli.Execute(ctx, newRootCommand(a), []string{"board"}) }()
	link := strings.TrimSpace(strings.TrimPrefix(<-printed.lines, "The board: "))
	url, instructor, _ := strings.Cut(link, "/#token=")
	<-printed.lines

	learner := filepath.Join(t.TempDir(), ".lab")
	token := &bytes.Buffer{}
	other := *a
	other.Out = token
	if err := cli.Execute(t.Context(), newRootCommand(&other), []string{"board", "token", "add", "Ada"}); err != nil {
		t.Fatal(err)
	}
	config := roomclient.Config{URL: "https" + strings.TrimPrefix(url, "http"), Key: keyOf(t, a), Token: strings.TrimSpace(token.String()), Learner: "Ada"}
	if err := roomclient.WriteConfig(learner, config); err != nil {
		t.Fatal(err)
	}
	results := []*verdict.Result{{Schema: 1, Lab: 2, Verdict: verdict.Fail, Run: "r-check", Started: time.Now()}}
	synctest.Test(t, func(t *testing.T) { // its clock stands still while the board writes, which may take longer than the limit
		outbox.Report(t.Context(), learner, results, func(line string) { t.Errorf("it says %q", line) })()
	})

	page := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && !strings.Contains(page, "r-check"); {
		page = read(t, url, instructor)
		time.Sleep(20 * time.Millisecond)
	}
	for _, part := range []string{"Ada", `data-run="r-check"`} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("after an interrupt: %v, %s", err, progress)
	}
	records := &bytes.Buffer{}
	a.Out = records
	if err := cli.Execute(t.Context(), newRootCommand(a), []string{"board", "export"}); err != nil || !strings.Contains(records.String(), "r-check") {
		t.Errorf("%v\n%s", err, records)
	}
}

// keyOf is the key of a room's server.
func keyOf(t *testing.T, a *app) string {
	t.Helper()
	_, key, err := certificate.Load(filepath.Join(a.State, boardDir))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func read(t *testing.T, url, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Opening the board to the network is said where somebody sees it.
func TestAnAddressComesWithAWarning(t *testing.T) {
	a, _, progress := boardApp(t)
	printed := synced{make(chan string, 10)}
	a.Out = printed
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cli.Execute(ctx, newRootCommand(a), []string{"board", "--address", "127.0.0.1"}) }()
	<-printed.lines
	stop()
	if err := <-ended; err != nil || !strings.Contains(progress.String(), "Warning: everybody on the network") {
		t.Errorf("%v, %q", err, progress)
	}
}
