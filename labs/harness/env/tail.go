package env

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/example/operator-lab/labs/harness/diagnostics"
)

const (
	// logLimit is how much of a manager's output is kept; each process of a run has one.
	logLimit = 2 << 20
	// tailLimit is how much of its end is quoted from while the manager runs. Each recovered panic takes 6 KB, and controller-runtime
	// tries again sixteen times in two minutes, for each Memcached.
	tailLimit = 512 << 10
)

// logFile is what a manager prints.
type logFile struct{ *os.File }

func openLog(path string) (logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return logFile{}, fmt.Errorf("keep the manager's output: %w", err)
	}
	return logFile{file}, nil
}

// String is the end of what was printed, without credentials.
func (l logFile) String() string {
	info, err := l.Stat()
	if err != nil {
		return ""
	}
	return l.read(max(0, info.Size()-tailLimit), tailLimit)
}

func (l logFile) read(from, limit int64) string {
	text, _ := io.ReadAll(io.NewSectionReader(l, from, limit))
	return diagnostics.Redact(string(text))
}

// Lines are the recent lines that contain text.
func (l logFile) Lines(text string) (lines []string) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Close leaves the beginning of what was printed in the file, without credentials.
func (l logFile) Close() error {
	text := l.read(0, logLimit)
	if err := l.Truncate(0); err != nil {
		return fmt.Errorf("keep the manager's output: %w", err)
	}
	_, _ = l.WriteString(text)
	return l.File.Close()
}
