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

// LogFilter has the names of a check's namespaces and objects. It tells the check's lines of a log from those of other checks.
type LogFilter []string

// names says whether the line mentions what belongs to the check.
func (f LogFilter) names(line string) bool {
	return slices.ContainsFunc(f, func(name string) bool { return name != "" && strings.Contains(line, name) })
}

// concerns says whether the line may be about the check: it names it, or no check. Without names it concerns every line.
func (f LogFilter) concerns(line string) bool {
	return len(f) == 0 || f.names(line) || !checkNamespaces.MatchString(line)
}

// checkNamespaces finds the namespaces of checks.
var checkNamespaces = regexp.MustCompile(`\b` + trace.NamespacePrefix + `[a-z0-9-]+-[a-z0-9]{5}\b`)

// complaint is how lines say that something went wrong, in whatever form.
var complaint = regexp.MustCompile(`(?i)error|forbidden|panic|fatal|fail|denied|refused|invalid|unable|cannot|could not`)

// Trouble gives the last n entries that tell of trouble and may be about the check.
func Trouble(log string, filter LogFilter, n int) []string {
	return lastEntries(log, n, func(line string) bool { return complaint.MatchString(line) && filter.concerns(line) })
}

// Last gives the last n entries, whatever they are about, but for those of other checks.
func Last(log string, filter LogFilter, n int) []string { return lastEntries(log, n, filter.concerns) }

// lastEntries are the last n entries that are wanted, without stack traces and empty lines. Entries that say the same are one,
// with a count.
func lastEntries(log string, n int, wanted func(line string) bool) []string {
	var found groups
	below := ""
	for _, line := range slices.Backward(strings.Split(log, "\n")) {
		// A line of a trace is indented, or the one below it is.
		trace := strings.HasPrefix(line, "\t") || strings.HasPrefix(below, "\t") && !stamp.MatchString(line) || traceHead.MatchString(line)
		if below = line; strings.TrimSpace(line) != "" && !trace && wanted(line) {
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
	// stamp is the time at the beginning of a line: as zap, log, slog and klog write it.
	stamp = regexp.MustCompile(`^(?:time=)?\d{4}[-/]\d\d[-/]\d\d[T ]\S+\s+|^[IWEF]\d{4} \S+\s+\d+ `)
)

// Shorten makes one short line of a log entry, without its time. Of the JSON at the end of a line of zap's, message and error
// stay: the rest says which object is meant, which a reader knows.
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
	// fatal begins what the Go runtime prints when it ends a program. A trace follows, or it is only text.
	fatal = regexp.MustCompile(`(?m)^(?:panic: |fatal error: ).*\n(?:\t.*\n|\[.*\n)*\n(?:goroutine |runtime stack:)`)
	// observed is the line that apimachinery writes for a panic that a controller recovered from, with the value as JSON or logfmt.
	observed = regexp.MustCompile(`(?m)^.*Observed a panic.*?\bpanic"?[:=] ?("(?:[^"\\]|\\.)*"|[^\s,}]+).*$`)
	// frame is a place in a stack trace.
	frame = regexp.MustCompile(`[^\s"()]+\.go:\d+`)
	// origin is what the runtime says about a panic and its author cannot use.
	origin = regexp.MustCompile(` \[recovered(?:, repanicked)?\]| goroutine \d+`)
)

// FindPanic finds the last panic in a log: the one that ended the program, or else one that was recovered from and concerns
// the check. It is one line with the innermost place in the workspace: "assignment to entry in nil map, at internal/x.go:12". It
// returns "" when there is none.
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

// recovered finds the last panic that a controller recovered from, in a line that is wanted.
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

// ownPlace is the innermost place of a trace that lies in the workspace. What ran after the panic, to recover from it, stands above
// the last call of panic and is not where it came from.
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
