package clusters

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"sigs.k8s.io/kind/pkg/log"
)

// kindLogger passes kind's progress on and keeps everything for the log of a failed creation. Warnings are only kept: on a
// creation that works they are noise.
type kindLogger struct {
	log func(line string)

	mu   sync.Mutex
	kept bytes.Buffer
}

func (l *kindLogger) record(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.kept, line)
}

func (l *kindLogger) text() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.kept.Bytes())
}

func (l *kindLogger) Warn(message string)               { l.record("warning: " + message) }
func (l *kindLogger) Warnf(format string, args ...any)  { l.Warn(fmt.Sprintf(format, args...)) }
func (l *kindLogger) Error(message string)              { l.record("error: " + message) }
func (l *kindLogger) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }

// V is kind's verbosity: 0 is for users, 1 to 3 are kept for the log.
func (l *kindLogger) V(level log.Level) log.InfoLogger { return kindInfo{l, level} }

type kindInfo struct {
	*kindLogger
	level log.Level
}

func (i kindInfo) Enabled() bool                    { return i.level <= 3 }
func (i kindInfo) Infof(format string, args ...any) { i.Info(fmt.Sprintf(format, args...)) }

// Info passes on the words with which kind announces a step, between a bullet and a picture.
func (i kindInfo) Info(message string) {
	message = strings.TrimSpace(message)
	i.record(message)
	if step, ok := strings.CutPrefix(message, "• "); ok && i.level == 0 {
		step = strings.TrimSuffix(step, "...")
		i.log(strings.TrimRightFunc(step, func(r rune) bool { return r > unicode.MaxLatin1 || unicode.IsSpace(r) }))
	}
}
