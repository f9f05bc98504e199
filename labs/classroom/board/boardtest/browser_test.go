package boardtest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/example/operator-lab/labs/classroom/board/boardtest"
)

// pageTimeout is for a page on a machine that does other things, too.
const pageTimeout = 30 * time.Second

// screen is how somebody looks at the board.
type screen struct {
	width, height int64
	dark          bool
	noScript      bool
}

// browser is a window of a browser of its own, which complains to the test about whatever it complains about.
type browser struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	// asked are the addresses of all requests.
	asked []string
	// quiet drops complaints: about a board that is away on purpose.
	quiet bool
}

func open(t *testing.T, s screen) *browser {
	t.Helper()
	path, err := findBrowser() // without it these tests fail: a page that nobody looked at proves nothing
	if err != nil {
		t.Fatal(err)
	}
	alloc, stop := chromedp.NewExecAllocator(t.Context(), browserOptions(path, profile(t), int(s.width), int(s.height))...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.onEvent); err != nil { // starts the browser, too
		t.Fatal(err)
	}
	theme := "light"
	if s.dark {
		theme = "dark"
	}
	b.do(
		call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}), chromedp.EmulateViewport(s.width, s.height),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		}),
		call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: s.noScript}),
	)
	return b
}

// profile is a folder for a browser.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser-") //nolint:usetesting // a folder with a test's name has too long a path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// action is something to do in a page.
type action = chromedp.Action[chromedp.Void]

// call is a command of the browser's protocol whose answer does not matter.
func call[P, R any](command cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

// onEvent notes requests, and fails the test at errors of scripts and of the page's policy.
func (b *browser) onEvent(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.t.Errorf("the page throws: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" && !b.quiet && !strings.Contains(e.Entry.Text, "401") {
			b.t.Errorf("the browser complains: %s (%s)", e.Entry.Text, e.Entry.URL)
		}
	}
}

func (b *browser) hush(quiet bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quiet = quiet
}

// do works in the page, and fails the test when that does not succeed within pageTimeout.
func (b *browser) do(actions ...action) {
	b.t.Helper()
	for _, action := range actions {
		ctx, cancel := context.WithTimeout(b.ctx, pageTimeout)
		err := chromedp.Do(ctx, action)
		cancel()
		if err != nil {
			b.shoot("failed")
			b.t.Fatal(err)
		}
	}
}

// value evaluates an expression.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pageTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.shoot("failed")
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// open logs in by the link that classroom board prints.
func (b *browser) open(board *boardtest.Board) {
	b.t.Helper()
	b.do(chromedp.Navigate(board.URL+"/#token="+board.Instructor), visible("#room-title"), b.until(`document.getElementById("live").textContent === "live"`))
}

// until waits for an expression to become true.
func (b *browser) until(expression string) action {
	return chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(pageTimeout))
}

// visible waits for an element to be seen.
func visible(selector string) action { return chromedp.WaitVisible(chromedp.CSS(selector)) }

func (b *browser) is(expression, want string) {
	b.t.Helper()
	if got := value[string](b, expression); got != want {
		b.t.Errorf("%s is %q, want %q", expression, got, want)
	}
}

func (b *browser) holds(expression string) {
	b.t.Helper()
	if !value[bool](b, expression) {
		b.t.Errorf("does not hold: %s", expression)
	}
}

func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.do(chromedp.KeyEvent(key))
	}
}

// shoot keeps what is to be seen, with BOARD_SCREENSHOTS in that folder, else in the test's artifacts.
func (b *browser) shoot(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pageTimeout)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	dir := os.Getenv("BOARD_SCREENSHOTS")
	if dir == "" {
		dir = b.t.ArtifactDir()
	}
	path := filepath.Join(dir, name+".png")
	if err = errors.Join(err, os.WriteFile(path, png, 0o644)); err != nil {
		b.t.Errorf("keep screenshot: %v", err)
	}
	b.t.Logf("screenshot: %s", path)
}
