package diagnostics

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/plain"
)

// LogFilter tells the lines of a log that are a check's from those of other checks. The usual forms of a log line are
// known only to shorten them; a line in no known form is shown as it is.
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

const (
	// maxLine is how much of one line is shown.
	maxLine = 300
	// search is how many entries from the end on are looked at.
	search = 2000
)

// Trouble gives the last n entries that tell of trouble and may be about the check: those that name it
// before those that name nobody. Entries that differ in numbers and times only are one, with a count.
func Trouble(log string, filter LogFilter, n int) []string {
	var own, others []string
	for _, entry := range entries(log) {
		switch {
		case !complaint.MatchString(entry) || !filter.concerns(entry):
		case filter.names(entry):
			own = append(own, Shorten(entry))
		default:
			others = append(others, Shorten(entry))
		}
	}
	lines := last(counted(own), n)
	return append(last(counted(others), n-len(lines)), lines...)
}

// About gives the last n entries that name the check or what it works with.
func About(log string, filter LogFilter, n int) []string {
	var own []string
	for _, entry := range entries(log) {
		if filter.names(entry) {
			own = append(own, Shorten(entry))
		}
	}
	return last(counted(own), n)
}

// Last gives the last n entries, whatever they are about, but for those of other checks.
func Last(log string, filter LogFilter, n int) []string {
	var all []string
	for _, entry := range entries(log) {
		if filter.concerns(entry) {
			all = append(all, Shorten(entry))
		}
	}
	return last(counted(all), n)
}

func last(lines []string, n int) []string { return lines[max(0, len(lines)-max(0, n)):] }

// entries are the lines of a log without stack traces and empty lines.
func entries(log string) []string {
	lines := strings.Split(log, "\n")
	lines = last(lines, search)
	var kept []string
	for i, line := range lines {
		if strings.TrimSpace(line) != "" && !inTrace(lines, i) {
			kept = append(kept, line)
		}
	}
	return kept
}

var (
	// place matches the second line of a stack frame, goroutine the first line of a trace.
	place     = regexp.MustCompile(`^\s+\S+\.(?:go|s):\d+`)
	goroutine = regexp.MustCompile(`^goroutine \d+.*:$|^\[signal `)
)

// inTrace says whether the line belongs to a stack trace: it is indented, or it heads one that is.
func inTrace(lines []string, i int) bool {
	line := lines[i]
	if goroutine.MatchString(line) || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") {
		return true
	}
	return i+1 < len(lines) && place.MatchString(lines[i+1]) && !stamp.MatchString(line)
}

// changing is what differs between two entries that say the same.
var changing = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|\d+`)

// counted folds lines that say the same into the last of them, in the order of their last appearance.
func counted(lines []string) []string {
	times := map[string]int{}
	for _, line := range lines {
		times[changing.ReplaceAllString(line, "#")]++
	}
	var kept []string
	for _, line := range slices.Backward(lines) {
		key := changing.ReplaceAllString(line, "#")
		switch n := times[key]; {
		case n == 1:
			kept = append(kept, line)
		case n > 1:
			kept = append(kept, fmt.Sprintf("%s (%d times)", line, n))
		}
		delete(times, key)
	}
	slices.Reverse(kept)
	return kept
}

var (
	// stamp is the time at the beginning of a line: as zap, log, klog and slog write it.
	stamp = regexp.MustCompile(`^(?:time=)?"?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*\s+|^[IWEF]\d{4} [\d:.]+\s+\d+ `)
	// boring are the keys that a learner does not miss: who logged, when, and for whom.
	boring = map[string]bool{
		"controller": true, "controllerGroup": true, "controllerKind": true, "reconcileID": true, "namespace": true, "name": true,
		"stacktrace": true, "panicGoValue": true, "ts": true, "time": true, "logger": true, "caller": true,
	}
)

// Shorten makes one short line of an entry: without its time, and with structured values as words.
func Shorten(entry string) string {
	text := stamp.ReplaceAllString(strings.TrimRight(entry, "\r\n"), "")
	if head, values, ok := structured(text); ok {
		text = joined(head, values)
	}
	return plain.Short(text, maxLine)
}

// structured splits an entry into its text and the JSON object that ends it.
func structured(text string) (string, map[string]any, bool) {
	at := strings.Index(text, "{")
	if at < 0 || !strings.HasSuffix(strings.TrimSpace(text), "}") {
		return "", nil, false
	}
	var values map[string]any
	if json.Unmarshal([]byte(text[at:]), &values) != nil {
		return "", nil, false
	}
	return strings.TrimSpace(text[:at]), values, true
}

func joined(head string, values map[string]any) string {
	if head == "" {
		head = strings.ToUpper(word(values, "level", "severity")) + " " + word(values, "msg", "message")
	}
	if err := word(values, "error", "err"); err != "" {
		head += ": " + err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !boring[key] && !isReference(values[key]) {
			head += fmt.Sprintf(" %s=%v", key, values[key])
		}
	}
	return head
}

// word takes the first of the keys out of the values.
func word(values map[string]any, keys ...string) string {
	for _, key := range keys {
		if text, ok := values[key].(string); ok {
			delete(values, key)
			return text
		}
	}
	return ""
}

// isReference says whether a value only names an object.
func isReference(value any) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for key := range object {
		if key != "name" && key != "namespace" {
			return false
		}
	}
	return true
}
