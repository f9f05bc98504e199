package harness

import (
	"os"
	"sync"
)

const (
	// logLimit is how much of a manager's output is kept on disk; a program can write without end.
	logLimit = 10 << 20
	// tailLimit is how much of its end is kept in memory, and quoted from.
	tailLimit = 64 << 10
)

// tail is a writer that keeps the beginning of what it gets in a file and the end in memory.
type tail struct {
	mu      sync.Mutex
	file    *os.File // nil when it could not be made: the log is evidence, never a condition
	written int
	last    []byte
}

func newTail(path string) *tail {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		file = nil
	}
	return &tail{file: file}
}

// Write never fails, so that the program that writes is never stopped by its log.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := logLimit - t.written; t.file != nil && room > 0 {
		n, _ := t.file.Write(data[:min(room, len(data))])
		t.written += n
	}
	t.last = append(t.last, data...)
	if excess := len(t.last) - tailLimit; excess > 0 {
		t.last = append([]byte(nil), t.last[excess:]...)
	}
	return len(data), nil
}

// String is the end of what was written.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
