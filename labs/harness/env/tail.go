package env

import (
	"bytes"
	"os"
	"strings"
	"sync"

	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// logLimit is how much of a manager's output is kept on disk; a program can write without end, and
	// each process of a run has one.
	logLimit = 2 << 20
	// tailLimit is how much of its end is at least kept in memory, and quoted from. Each recovered panic
	// takes 6 KB, and controller-runtime tries again sixteen times in two minutes, for each Memcached.
	tailLimit = 512 << 10
	// lineLimit is how much of a line is waited for before it is written.
	lineLimit = 64 << 10
)

// tail is a writer that keeps the beginning of what it gets in a file and the end in memory. Neither of
// them gives a credential away that the program printed.
type tail struct {
	mu      sync.Mutex
	file    *os.File // nil when it could not be made: the log is evidence, never a condition
	written int
	begun   []byte // a line that has not ended yet, and is not in the file
	last    process.Tail
}

func newTail(path string) *tail {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		file = nil
	}
	return &tail{file: file, last: process.Tail{Limit: tailLimit}}
}

// Write never fails, so that the program that writes is never stopped by its log.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(data)
	return t.last.Write(data)
}

// keep writes to the file, line by line: a credential is known by what stands around it.
func (t *tail) keep(data []byte) {
	if t.file == nil || t.written >= logLimit {
		return
	}
	t.begun = append(t.begun, data...)
	end := bytes.LastIndexByte(t.begun, '\n') + 1
	if len(t.begun) > lineLimit {
		end = len(t.begun)
	}
	t.toFile(t.begun[:end])
	t.begun = append([]byte(nil), t.begun[end:]...)
}

func (t *tail) toFile(data []byte) {
	if room := logLimit - t.written; t.file != nil && room > 0 && len(data) > 0 {
		text := diagnostics.Redact(string(data))
		n, _ := t.file.WriteString(text[:min(room, len(text))])
		t.written += n
	}
}

// Flush writes a last line that has no end. The writer can be used again.
func (t *tail) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.toFile(t.begun)
	t.begun = nil
}

// String is the end of what was written.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return diagnostics.Redact(t.last.String())
}

// Lines are the recent lines that contain text.
func (t *tail) Lines(text string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.Lines(t.last.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, diagnostics.Redact(strings.TrimSpace(line)))
		}
	}
	return lines
}
