package diagnostics

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/example/operator-lab/labs/internal/plain"
)

// Panic is a panic of a program, as far as its author needs to know it.
type Panic struct {
	// Message is what was panicked with, in one line.
	Message string
	// Frames are the places in the learner's own files, "internal/controller/x.go:12", the innermost first.
	Frames []string
	// Recovered says that the program went on: a controller catches the panics of its Reconcile.
	Recovered bool
}

// String is the panic in one line.
func (p *Panic) String() string {
	if len(p.Frames) == 0 {
		return p.Message
	}
	return p.Message + ", at " + p.Frames[0]
}

var (
	// fatal begins what the Go runtime prints when it ends a program. A trace follows, or it is only text.
	fatal = regexp.MustCompile(`(?m)^(?:panic: |fatal error: ).*\n(?:\t.*\n|\[.*\n)*\n(?:goroutine |runtime stack:)`)
	// observed is the line that apimachinery writes for a panic that a controller recovered from.
	observed = regexp.MustCompile(`(?m)^.*Observed a panic.*$`)
	// panicValue is the value in such a line, as JSON and as logfmt have it.
	panicValue = regexp.MustCompile(`"?\bpanic"?[:=] ?("(?:[^"\\]|\\.)*")`)
	// frame is a place in a stack trace.
	frame = regexp.MustCompile(`([^\s"()]+\.go):(\d+)`)
	// origin is what the runtime says about a panic and its author cannot use.
	origin = regexp.MustCompile(` \[recovered(?:, repanicked)?\]| goroutine \d+`)
)

// maxFrames is how many of the learner's own frames tell where a panic came from.
const maxFrames = 3

// FindPanic finds the last panic in a log: the one that ended the program, or else one that was recovered from and concerns
// the check. workspace is the folder whose files count as the learner's own. It returns nil when there is none.
func FindPanic(log, workspace string, filter LogFilter) *Panic {
	if places := fatal.FindAllStringIndex(log, -1); len(places) > 0 {
		text := log[places[len(places)-1][0]:]
		_, trace, _ := strings.Cut(text, "\ngoroutine ")
		return &Panic{Message: fatalMessage(text), Frames: ownFrames(trace, workspace)}
	}
	places := observed.FindAllStringIndex(log, -1)
	for _, place := range slices.Backward(places) {
		line := log[place[0]:place[1]]
		if !filter.concerns(line) {
			continue
		}
		text := "unknown"
		if match := panicValue.FindStringSubmatch(line); match != nil {
			value, _ := strconv.Unquote(match[1])
			text = cmp.Or(value, strings.Trim(match[1], `"`))
		}
		trace := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(line) + traceBelow(log[place[1]:])
		return &Panic{Message: plain.Short(text, maxLine), Frames: ownFrames(trace, workspace), Recovered: true}
	}
	return nil
}

// fatalMessage reads what stands before the first trace. The runtime indents a value of several lines.
func fatalMessage(text string) string {
	head, _, _ := strings.Cut(text, "\n\n")
	first, more, _ := strings.Cut(head, "\n")
	for _, line := range strings.Split(more, "\n") {
		if !strings.HasPrefix(line, "\t") {
			break
		}
		first += line
	}
	return plain.Short(strings.TrimPrefix(origin.ReplaceAllString(first, ""), "panic: "), maxLine)
}

// traceBelow is the stack trace that a logger wrote below an entry.
func traceBelow(text string) string {
	lines := strings.Split(strings.TrimPrefix(text, "\n"), "\n")
	n := 0
	for n < len(lines) && inTrace(lines, n) {
		n++
	}
	return "\n" + strings.Join(lines[:n], "\n")
}

// ownFrames are the places of a trace that lie in the workspace. What ran after the panic, to recover from it, stands above
// the last call of panic and is not where it came from.
func ownFrames(trace, workspace string) []string {
	if workspace == "" {
		return nil
	}
	trace, _, _ = strings.Cut(trace, "\n\ngoroutine ")
	trace = trace[max(0, strings.LastIndex(trace, "\npanic(")):]
	roots := []string{workspace}
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		roots = append(roots, real)
	}
	var own []string
	for _, match := range frame.FindAllStringSubmatch(trace, -1) {
		for _, root := range roots {
			file, ok := strings.CutPrefix(match[1], strings.TrimSuffix(root, "/")+"/")
			if place := file + ":" + match[2]; ok && !slices.Contains(own, place) {
				own = append(own, place)
			}
		}
	}
	return own[:min(len(own), maxFrames)]
}
