package diagnostics

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
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
	// observed is the line that apimachinery writes for a panic that a controller recovered from. It is
	// the library's, not the learner's: whoever has no such line has no such panic.
	observed = regexp.MustCompile(`(?m)^.*Observed a panic.*$`)
	// panicValue is the value in such a line, as JSON and as logfmt have it.
	panicValue = regexp.MustCompile(`"?\bpanic"?[:=] ?("(?:[^"\\]|\\.)*")`)
	// frame is a place in a stack trace.
	frame = regexp.MustCompile(`([^\s"()]+\.go):(\d+)`)
	// addressOf is what the runtime says about a panic's origin and its author cannot use.
	addressOf = regexp.MustCompile(` \[recovered(?:, repanicked)?\]| goroutine \d+`)
)

const (
	// maxFrames is how many of the learner's own frames tell where a panic came from.
	maxFrames = 3
	// maxMessage is how much of a panic's value is shown; anything can be panicked with.
	maxMessage = 300
)

// FindPanic finds the last panic in a log: the one that ended the program, or else one that was recovered
// from. workspace is the folder whose files count as the learner's own. Of recovered panics only those
// count that concern the check. It returns nil when there is none.
func FindPanic(log, workspace string, filter LogFilter) *Panic {
	if places := fatal.FindAllStringIndex(log, -1); len(places) > 0 {
		text := log[places[len(places)-1][0]:]
		_, trace, _ := strings.Cut(text, "\ngoroutine ")
		return &Panic{Message: message(text), Frames: ownFrames(trace, workspace)}
	}
	places := observed.FindAllStringIndex(log, -1)
	for _, place := range slices.Backward(places) {
		line := log[place[0]:place[1]]
		if !filter.concerns(line) {
			continue
		}
		text := "unknown"
		if match := panicValue.FindStringSubmatch(line); match != nil {
			text = unquote(match[1])
		}
		trace := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(line) + following(log[place[1]:])
		return &Panic{Message: plain.Short(text, maxMessage), Frames: ownFrames(trace, workspace), Recovered: true}
	}
	return nil
}

// message reads what stands between "panic: " and the first trace. A value of several lines is indented
// by the runtime.
func message(text string) string {
	head, _, _ := strings.Cut(text, "\n\n")
	var lines []string
	for i, line := range strings.Split(head, "\n") {
		if i > 0 && !strings.HasPrefix(line, "\t") {
			break
		}
		lines = append(lines, addressOf.ReplaceAllString(line, ""))
	}
	return plain.Short(strings.TrimPrefix(strings.Join(lines, " "), "panic: "), maxMessage)
}

// following are the lines of a stack trace that a logger wrote below an entry.
func following(text string) string {
	var trace strings.Builder
	lines := strings.Split(strings.TrimPrefix(text, "\n"), "\n")
	for i, line := range lines {
		if !inTrace(lines, i) {
			break
		}
		trace.WriteString("\n" + line)
	}
	return trace.String()
}

// ownFrames are the places of a trace that lie in the workspace. What ran after the panic, to recover from
// it, stands above the last call of panic and is not where it came from.
func ownFrames(trace, workspace string) []string {
	trace, _, _ = strings.Cut(trace, "\n\ngoroutine ")
	if at := strings.LastIndex(trace, "\npanic("); at >= 0 {
		trace = trace[at:]
	}
	roots := []string{workspace}
	if real, err := filepath.EvalSymlinks(workspace); err == nil && real != workspace {
		roots = append(roots, real)
	}
	var own []string
	for _, match := range frame.FindAllStringSubmatch(trace, -1) {
		for _, root := range roots {
			file, ok := strings.CutPrefix(filepath.ToSlash(match[1]), strings.TrimSuffix(filepath.ToSlash(root), "/")+"/")
			if place := file + ":" + match[2]; ok && workspace != "" && !slices.Contains(own, place) {
				own = append(own, place)
			}
		}
	}
	return own[:min(len(own), maxFrames)]
}

func unquote(text string) string {
	var value string
	if json.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return strings.Trim(text, `"`)
}
