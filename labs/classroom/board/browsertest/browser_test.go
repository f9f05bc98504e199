// Package browsertest looks at the board in a real browser. It is a module of its own, so that nothing else needs the browser's driver.
package browsertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	root        = "../../../.."
	port        = 27777
	pageTimeout = 30 * time.Second
)

// TestAProjectorAndAPhoneShowARow looks at a board with twenty learners, and keeps a screenshot of each width (BOARD_SCREENSHOTS names
// a folder).
func TestAProjectorAndAPhoneShowARow(t *testing.T) {
	serve(t)
	for i := range 20 {
		send(t, fmt.Sprintf("learner-%d", i+1), i%7+1, i)
	}
	send(t, "김민준", 4, 2)
	browser := open(t)
	for name, width := range map[string]int64{"projector": 1920, "phone": 390} {
		do(browser, t, chromedp.EmulateViewport(width, 1080),
			chromedp.Navigate(fmt.Sprintf("http://127.0.0.1:%d/", port+2)), chromedp.WaitVisible(chromedp.CSS("#live.on")))
		shoot(browser, t, name)
		row := text(browser, t, `[...document.querySelectorAll("#room tbody tr")].find(r => r.cells[0].textContent === "김민준").innerText`)
		if !strings.Contains(row, "1 red") {
			t.Errorf("%s: the row is %q", name, row)
		}
		if lines := text(browser, t, `String(new Set([...document.querySelector("#room tbody tr").cells].slice(1).map(c => c.offsetTop)).size)`); lines != "1" {
			t.Errorf("%s: the labs of a learner are on %s lines", name, lines)
		}
		if wide := text(browser, t, `String(document.documentElement.scrollWidth > innerWidth)`); wide != "false" {
			t.Errorf("%s: the page is wider than the screen", name)
		}
	}
	// What comes later is shown without a reload, and a cell opens over the board.
	send(t, "newcomer", 1, 0)
	const cell = `a[aria-label^="newcomer, lab 1: pass"]`
	do(browser, t, chromedp.WaitVisible(chromedp.CSS(cell)), chromedp.Click(chromedp.CSS(cell)), chromedp.WaitVisible(chromedp.CSS("dialog[open] pre")))
	shoot(browser, t, "cell")
}

// serve runs the board of a copy of the checkout.
func serve(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	program, checkout := filepath.Join(dir, "classroom"), filepath.Join(dir, "checkout")
	script := `go build -o "$0" ./labs/classroom/cmd/classroom && mkdir "$1" && git ls-files -z --cached --others --exclude-standard |
		xargs -0 sh -c 'for f; do [ ! -e "$f" ] || echo "$f"; done' sh | tar -cf - -T - | tar -xf - -C "$1"`
	build := exec.CommandContext(t.Context(), "bash", "-ec", script, program, checkout)
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "--port", fmt.Sprint(port))
	cmd.Dir = checkout
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil { // it listens when it says where
		t.Fatal(err)
	}
}

var client = http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it is ours, on loopback

func post(t *testing.T, path, token, body string, answer any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(answer)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s %v %s", path, resp.Status, err, text)
	}
}

// send has a learner join, pass the labs before one, and fail that one where red is even.
func send(t *testing.T, name string, lab, red int) {
	t.Helper()
	var joined struct{ Token string }
	post(t, "/join", "", fmt.Sprintf(`{"name": %q}`, name), &joined)
	for n := 1; n <= lab; n++ {
		verdict, checks := "pass", `[]`
		if n == lab && red%2 == 0 && lab == 4 {
			verdict, checks = "fail", `[{"id": "creates-deployment", "state": "fail", "expected": "a Deployment", "seen": "none"}]`
		}
		post(t, "/results", joined.Token, fmt.Sprintf(`{"schema": 1, "lab": %d, "run": "r%d", "verdict": %q, "seconds": 9, "cluster": {"provider": "embedded", "version": "v1.36.1"}, "started": %q, "checks": %s}`,
			n, n, verdict, time.Now().Add(time.Duration(n-30)*time.Minute).Format(time.RFC3339), checks), &struct{}{})
	}
}

// open starts a browser, with a profile whose path is short: below it is a socket, for whose path Linux has 108 bytes.
func open(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("the board is looked at in Chromium: apt-get install chromium")
	}
	profile, err := os.MkdirTemp("", "browser-") //nolint:usetesting // it would be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		chromedp.Env("HOME="+profile, "TMPDIR="+profile), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-gpu", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses one to root; it sees our own page only
	}
	alloc, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	// The first action starts the browser, which lives as long as the context of that action.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func do(browser context.Context, t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, action := range actions {
		ctx, cancel := context.WithTimeout(browser, pageTimeout)
		err := chromedp.Do(ctx, action)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func text(browser context.Context, t *testing.T, expression string) string {
	t.Helper()
	value, err := chromedp.Run(browser, chromedp.Evaluate[string](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func shoot(browser context.Context, t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("BOARD_SCREENSHOTS")
	if dir == "" {
		dir = t.ArtifactDir()
	}
	png, err := chromedp.Run(browser, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}
