//go:build unix

package schoolday

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/example/operator-lab/labs/internal/board/chromium"
	"github.com/example/operator-lab/labs/internal/exit"
)

const (
	// serveLimit is how long the server may take until it says where it is; the first time it packs the course.
	serveLimit = 2 * time.Minute
	// boardLimit is how long a result may take until the page shows it. A learner's command sends it within a second
	// of the verdict, and the page hears of it at once.
	boardLimit = 20 * time.Second
	// lookAgain is how often the page is read until it shows what it should: once for each change that one sees.
	lookAgain = 200 * time.Millisecond
)

// board is the room's server, and a browser that looks at its page.
type board struct {
	link    string
	server  *exec.Cmd
	ended   chan error
	profile string
	page    context.Context
	leave   func()
}

var boardLink = regexp.MustCompile(`http://\S+/#token=\S+`)

// serve starts the room's server on a port, and returns when it has said where the board is.
func (d *day) serve(ctx context.Context, port int) (*board, error) {
	file, err := os.OpenFile(filepath.Join(d.logs, "serve.log"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(d.Root, "bin", "lab"), "classroom", "serve", "--listen", fmt.Sprintf("127.0.0.1:%d", port))
	cmd.Dir, cmd.Stderr = d.Root, file
	politely(cmd)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the room's server: %w", err), file.Close())
	}
	b := &board{server: cmd, ended: make(chan error, 1)}
	link := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if found := boardLink.FindString(lines.Text()); found != "" {
				link <- found
				break
			}
		}
		_, _ = io.Copy(io.Discard, out) // the server must not wait for a reader
		b.ended <- errors.Join(cmd.Wait(), file.Close())
	}()
	select {
	case b.link = <-link:
		return b, nil
	case err := <-b.ended:
		return nil, fmt.Errorf("the room's server ended: %w; see %s", err, file.Name())
	case <-time.After(serveLimit):
		return nil, errors.Join(fmt.Errorf("the room's server does not say where it is; see %s", file.Name()), b.close())
	}
}

// open opens the page by the link that the server has printed, as an instructor does.
func (b *board) open(ctx context.Context) error {
	path, err := chromium.Find()
	if err != nil {
		return err
	}
	if b.profile, err = os.MkdirTemp("", "schoolday-browser-"); err != nil {
		return err
	}
	alloc, stop := chromedp.NewExecAllocator(context.WithoutCancel(ctx), chromium.Options(path, b.profile, 1920, 1080)...)
	page, cancel := chromedp.NewContext(alloc)
	b.page, b.leave = page, func() { cancel(); stop() }
	for _, action := range []chromedp.Action[chromedp.Void]{
		chromedp.Navigate(b.link), chromedp.WaitVisible(chromedp.CSS("#room-title")),
	} {
		if err := chromedp.Do(page, action); err != nil {
			return fmt.Errorf("open the board: %w", err)
		}
	}
	return nil
}

// cells reads the page: for each learner and lab the run that is shown, and as what.
const cells = `Object.fromEntries([...document.querySelectorAll("#room tbody tr")].flatMap((tr) =>
  [...tr.querySelectorAll("td")].map((td) => [
    tr.querySelector("th").textContent + " lab " + td.querySelector("i").textContent, td.className + " " + td.dataset.run])))`

// untried is what stands in a cell without a result.
const untried = "untried "

// shows waits until the page shows what each learner has seen last, and nothing else, and says what does not.
func (b *board) shows(ctx context.Context, learners []*learner) error {
	want := map[string]string{}
	for _, l := range learners {
		for lab, result := range l.saw {
			want[fmt.Sprintf("%s lab %d", l.Name, lab)] = fmt.Sprintf("%s %s", result.Verdict, result.Run)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, boardLimit)
	defer cancel()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		have, err := chromedp.Run(b.page, chromedp.Evaluate[map[string]string](cells))
		if err != nil {
			return fmt.Errorf("read the board: %w", err)
		}
		differences := compare(want, have)
		if len(differences) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the board does not show what the learners saw: %s", strings.Join(differences, "; "))
		case <-again.C:
		}
	}
}

// compare says where the page differs from what was seen.
func compare(want, have map[string]string) (differences []string) {
	for cell, state := range want {
		if have[cell] != state {
			differences = append(differences, fmt.Sprintf("%s is %q, want %q", cell, have[cell], state))
		}
	}
	for cell, state := range have {
		if want[cell] == "" && state != untried {
			differences = append(differences, fmt.Sprintf("%s is %q, and nobody saw that", cell, state))
		}
	}
	return differences
}

// close ends browser and server.
func (b *board) close() error {
	if b == nil {
		return nil
	}
	if b.leave != nil {
		b.leave()
	}
	err := b.server.Cancel()
	select {
	case ended := <-b.ended:
		if exited, ok := errors.AsType[*exec.ExitError](ended); ok && exited.ExitCode() == exit.Interrupted {
			ended = nil
		}
		err = errors.Join(err, ended)
	case <-time.After(goodbye):
		err = errors.Join(err, errors.New("the room's server does not end"))
	}
	return errors.Join(err, os.RemoveAll(b.profile))
}

// freePort is one that nobody listens on; the handouts have to name it before the server begins.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
