package diagnostics

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/trace"
)

// LogFilter has the names of a check's namespaces or objects. It finds the lines of a log that are about the check.
type LogFilter []string

// names says whether the line has one of the names.
func (f LogFilter) names(line string) bool {
	return slices.ContainsFunc(f, func(name string) bool { return name != "" && strings.Contains(line, name) })
}

// concerns says whether the line may be about the check: it has one of the names, or no namespace of any check. An empty filter
// takes every line.
func (f LogFilter) concerns(line string) bool {
	return len(f) == 0 || f.names(line) || !checkNamespaces.MatchString(line)
}

// checkNamespaces finds the namespaces of checks.
var checkNamespaces = regexp.MustCompile(`\b` + trace.NamespacePrefix + `[a-z0-9-]+-[a-z0-9]{5}\b`)

// complaint finds words in a line that tell of an error.
var complaint = regexp.MustCompile(`(?i)error|forbidden|panic|fatal|fail|denied|refused|invalid|unable|cannot|could not`)

// Trouble returns the last n entries that tell of an error and may be about the check.
func Trouble(log string, filter LogFilter, n int) []string {
	return lastEntries(log, n, func(line string) bool { return complaint.MatchString(line) && filter.concerns(line) })
}

// Last returns the last n entries that may be about the check.
func Last(log string, filter LogFilter, n int) []string { return lastEntries(log, n, filter.concerns) }

// lastEntries are the last n entries that are wanted, without stack traces and empty lines. Equal entries are one entry with a
// count.
func lastEntries(log string, n int, wanted func(line string) bool) []string {
	var found groups
	below := ""
	for _, line := range slices.Backward(strings.Split(log, "\n")) {
		// A line of a stack trace is indented, or the line below it is.
		inTrace := strings.HasPrefix(line, "\t") || strings.HasPrefix(below, "\t") && !stamp.MatchString(line) || traceHead.MatchString(line)
		if below = line; strings.TrimSpace(line) != "" && !inTrace && wanted(line) {
			found.add(Shorten(line), "", 1)
		}
	}
	entries := found.lines()
	entries = entries[:min(len(entries), n)]
	slices.Reverse(entries)
	return entries
}

var (
	// traceHead is the first line of a stack trace.
	traceHead = regexp.MustCompile(`^goroutine \d+.*:$|^\[signal `)
	// stamp is the time at the beginning of a line, in the formats of zap, log, slog and klog.
	stamp = regexp.MustCompile(`^(?:time=)?\d{4}[-/]\d\d[-/]\d\d[T ]\S+\s+|^[IWEF]\d{4} \S+\s+\d+ `)
)

// Shorten makes one short line of a log entry, without its time. Of the JSON in a line of zap it keeps the message and the error: the
// rest names the object, which a reader knows.
func Shorten(entry string) string {
	text := stamp.ReplaceAllString(entry, "")
	if head, fields, found := strings.Cut(text, "{"); found {
		var values struct{ Msg, Error string }
		if json.Unmarshal([]byte("{"+fields), &values) == nil {
			text = strings.TrimSpace(head + values.Msg)
			if values.Error != "" {
				text += ": " + values.Error
			}
		}
	}
	return plain.Short(text, maxWidth)
}

var (
	// fatal is the beginning of the Go runtime's output when it ends a program. Without a stack trace below, it is other text.
	fatal = regexp.MustCompile(`(?m)^(?:panic: |fatal error: ).*\n(?:\t.*\n|\[.*\n)*\n(?:goroutine |runtime stack:)`)
	// observed is the line that apimachinery logs for a panic from which a controller recovered, with the value as JSON or logfmt.
	observed = regexp.MustCompile(`(?m)^.*Observed a panic.*?\bpanic"?[:=] ?("(?:[^"\\]|\\.)*"|[^\s,}]+).*$`)
	// frame is a place in a stack trace.
	frame = regexp.MustCompile(`[^\s"()]+\.go:\d+`)
	// origin is what the runtime adds to a panic's value, and what no reader needs.
	origin = regexp.MustCompile(` \[recovered(?:, repanicked)?\]| goroutine \d+`)
)

// FindPanic finds the last panic in a log: the one that ended the program, or else one from which a controller recovered and that may
// be about the check. It returns one line with the innermost place in the workspace: "assignment to entry in nil map, at
// internal/x.go:12". It returns "" if there is no panic.
func FindPanic(log, workspace string, filter LogFilter) string {
	places := fatal.FindAllStringIndex(log, -1)
	if len(places) == 0 {
		return recovered(log, workspace, filter.concerns)
	}
	log = log[places[len(places)-1][0]:]
	message, _, _ := strings.Cut(log, "\n\n") // a value of several lines is indented
	message, _, _ = strings.Cut(message, "\n[")
	_, trace, _ := strings.Cut(log, "\ngoroutine ")
	return plain.Short(strings.TrimPrefix(origin.ReplaceAllString(message, ""), "panic: "), maxWidth) + ownPlace(trace, workspace)
}

// recovered finds the last panic from which a controller recovered, among the lines that are wanted.
func recovered(log, workspace string, wanted func(line string) bool) string {
	for _, match := range slices.Backward(observed.FindAllStringSubmatch(log, -1)) {
		if wanted(match[0]) {
			value, err := strconv.Unquote(match[1])
			if err != nil {
				value = strings.Trim(match[1], `"`)
			}
			trace := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(match[0])
			return plain.Short(value, maxWidth) + ownPlace(trace, workspace)
		}
	}
	return ""
}

// ownPlace is the innermost place in the workspace of a stack trace. It ignores all above the last call of panic: that code ran later,
// to recover.
func ownPlace(trace, workspace string) string {
	trace, _, _ = strings.Cut(trace, "\n\ngoroutine ")
	trace = trace[max(0, strings.LastIndex(trace, "\npanic(")):]
	for _, match := range frame.FindAllString(trace, -1) {
		if place, ok := strings.CutPrefix(match, workspace+"/"); ok && workspace != "" {
			return ", at " + place
		}
	}
	return ""
}
