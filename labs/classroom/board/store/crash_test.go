package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/store"
)

// crashDir tells a process of this test to write into that board until it is killed.
const crashDir = "BOARD_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, writeForEver(context.Background(), dir, os.Getpid()))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForEver says of each result that the board has accepted it, as a server would.
func writeForEver(ctx context.Context, dir string, process int) error {
	s, err := store.Open(ctx, dir)
	if err != nil {
		return err
	}
	l, err := s.Learner(ctx, "Ada")
	for i := 0; err == nil; i++ {
		r := store.Result{Learner: l.ID, Run: fmt.Sprintf("%d-%d", process, i), Lab: 1, Document: []byte(strings.Repeat("x", i%9000))}
		if _, err = s.AddResult(ctx, &r); err == nil {
			fmt.Println(r.Run)
		}
	}
	return err
}

// A board that is killed at any moment has everything that it accepted, and goes on.
func TestNothingAcceptedIsLostInACrash(t *testing.T) {
	dir := t.TempDir()
	accepted := map[string]bool{}
	for round := range 8 {
		for _, run := range killedAfter(t, dir, 1+round*7, time.Duration(round)*time.Millisecond) {
			accepted[run] = true
		}
	}
	s := open(t, dir)
	if verdict, err := s.Text(t.Context(), "PRAGMA integrity_check"); err != nil || verdict != "ok" {
		t.Errorf("the file is damaged: %s, %v", verdict, err)
	}
	kept := map[string]bool{}
	err := s.Each(t.Context(), 0, func(r store.Result) error {
		kept[r.Run] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for line := range accepted {
		if !kept[line] {
			t.Errorf("%s was accepted and is gone", line)
		}
	}
	t.Logf("%d accepted, %d kept", len(accepted), len(kept))
}

// killedAfter starts a process that writes, kills it when it has written n results and a moment more, and returns
// what it said was accepted.
func killedAfter(t *testing.T, dir string, n int, moment time.Duration) []string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var runs []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		runs = append(runs, lines.Text())
		if len(runs) == n {
			time.AfterFunc(moment, func() { _ = child.Process.Kill() }) // in the middle of a later one
		}
	}
	if err := child.Wait(); err == nil || len(runs) < n {
		t.Fatalf("the writer ended by itself after %d results", len(runs))
	}
	return runs
}
