package diagnostics

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/plain"
)

// LogFilter tells the lines of a log that are a check's from those of other checks.
type LogFilter struct {
	// Names are the namespaces and objects of the check.
	Names []string
	// CheckNamespaces finds the namespaces of all checks; nil finds none.
	CheckNamespaces *regexp.Regexp
}

// names says whether the line mentions what belongs to the check.
func (f LogFilter) names(line string) bool {
	return slices.ContainsFunc(f.Names, func(name string) bool { return name != "" && strings.Contains(line, name) })
}

// concerns says whether the line may be about the check: it names it, or nobody.
func (f LogFilter) concerns(line string) bool {
	return f.names(line) || f.CheckNamespaces == nil || !f.CheckNamespaces.MatchString(line)
}

// complaint is how lines say that something went wrong, in whatever form.
var complaint = regexp.MustCompile(`(?i)error|forbidden|panic|fatal|fail|denied|refused|invalid|unable|cannot|could not`)

// Trouble gives the last n entries that tell of trouble and may be about the check. Those that name it come last, where a
// reader looks first.
func Trouble(log string, filter LogFilter, n int) []string {
	own := lastEntries(log, n, func(line string) bool { return complaint.MatchString(line) && filter.names(line) })
	others := lastEntries(log, n-len(own), func(line string) bool {
		return complaint.MatchString(line) && filter.concerns(line) && !filter.names(line)
	})
	return append(others, own...)
}

// About gives the last n entries that name the check or what it works with.
func About(log string, filter LogFilter, n int) []string { return lastEntries(log, n, filter.names) }

// Last gives the last n entries, whatever they are about, but for those of other checks.
func Last(log string, filter LogFilter, n int) []string { return lastEntries(log, n, filter.concerns) }

// lastEntries are the last n entries that are wanted, without stack traces and empty lines. Entries that say the same are one,
// with a count.
func lastEntries(log string, n int, wanted func(line string) bool) []string {
	var found counts
	lines := strings.Split(log, "\n")
	for i, line := range slices.Backward(lines) {
		if strings.TrimSpace(line) != "" && !inTrace(lines, i) && wanted(line) {
			found.add(Shorten(line), 1)
		}
	}
	entries := found.lines()
	entries = entries[:min(len(entries), max(0, n))]
	slices.Reverse(entries)
	return entries
}

var (
	// frameLine matches the second line of a stack frame, traceHead the first line of a trace.
	frameLine = regexp.MustCompile(`^\s+\S+\.(?:go|s):\d+`)
	traceHead = regexp.MustCompile(`^goroutine \d+.*:$|^\[signal `)
	// stamp is the time at the beginning of a line: as zap, log, slog and klog write it.
	stamp = regexp.MustCompile(`^(?:time=)?\d{4}[-/]\d\d[-/]\d\d[T ]\S+\s+|^[IWEF]\d{4} \S+\s+\d+ `)
)

// inTrace says whether the line belongs to a stack trace: it is indented, or it heads one that is.
func inTrace(lines []string, i int) bool {
	line := lines[i]
	return traceHead.MatchString(line) || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") ||
		i+1 < len(lines) && frameLine.MatchString(lines[i+1]) && !stamp.MatchString(line)
}

// maxLine is how much of one line is shown, in characters.
const maxLine = 300

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
	return plain.Short(text, maxLine)
}
