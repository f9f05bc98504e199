// Package diagnostics chooses, of all that can be seen when a check fails, the few lines that explain it, and
// keeps the rest for those who want to look themselves.
package diagnostics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// maxLines is how many lines one kind of evidence may have: an answer fits on one screen.
	maxLines = 3
	// maxWidth is how much of one line is kept, in characters.
	maxWidth = 260
)

// Snapshot is what could be seen of a check's objects and manager when it failed. Every field is optional.
type Snapshot struct {
	// Namespaces are the check's own.
	Namespaces []string
	// CheckNamespaces finds the names of namespaces that belong to any check, to tell this one's from others'.
	CheckNamespaces *regexp.Regexp
	// Quota is the name of the quota that checks set themselves. What it refuses explains nothing.
	Quota string
	// Workspace is the folder with the learner's files.
	Workspace string

	// Manager says whether the check judges a manager, User under which name the API server knows it.
	Manager bool
	User    string
	// Gone says that the finding is about the manager itself, which did not get as far as the check.
	Gone bool
	// Log is the last part of the manager's output.
	Log string
	// Requests are those that the manager has sent since the check began, in order.
	Requests []apiproxy.Request

	objects objects
	output  map[string]string // of containers in trouble, by "pod/container"
}

// Explain chooses what explains f, the most telling first. What f says itself is not said again.
func (s *Snapshot) Explain(f *finding.Finding) []finding.Evidence {
	var all []finding.Evidence
	said := f.Seen
	if len(f.Fields) > 0 {
		said = "" // the fields are shown in its place
	}
	add := func(title string, lines []string) {
		var chosen []string
		for _, line := range lines {
			if line = plain.Short(Redact(line), maxWidth); !strings.Contains(plain.Short(said, maxWidth), line) && len(chosen) < maxLines {
				chosen = append(chosen, line)
			}
		}
		if len(chosen) > 0 {
			all = append(all, finding.Evidence{Title: title, Lines: chosen})
		}
	}
	panicked, refused := FindPanic(s.Log, s.Workspace, s.filter()), s.refused()
	if panicked != nil {
		add(panicLines(panicked))
	}
	add("The API server refused your manager", s.refusedLines(refused, said))
	add("Your manager's log", s.complaints(panicked, refused))
	add("The Pods", s.podLines())
	add("The events", s.eventLines())
	if len(all) == 0 && s.Manager && panicked == nil && len(refused) == 0 { // else the finding has said it
		if !s.Gone {
			add("Your manager wrote", s.writes())
		}
		add(s.quietLog())
	}
	return all
}

// filter tells the lines of a log that are this check's from those of others.
func (s *Snapshot) filter() LogFilter {
	return LogFilter{Names: slices.Concat(s.Namespaces, s.objects.memcacheds), CheckNamespaces: s.CheckNamespaces}
}

func panicLines(p *Panic) (title string, lines []string) {
	title, lines = "Your manager panicked", []string{p.Message}
	if p.Recovered {
		title = "Your Reconcile panicked"
	}
	if len(p.Frames) > 0 {
		lines = append(lines, "at "+strings.Join(p.Frames, ", called from "))
	}
	return title, lines
}

// complaints are the last ones in the manager's log that nothing else says already.
func (s *Snapshot) complaints(panicked *Panic, refused []refusal) []string {
	known := func(line string) bool {
		if panicked != nil && (strings.Contains(line, panicked.Message) || strings.HasPrefix(line, "panic: ")) {
			return true
		}
		return slices.ContainsFunc(refused, func(r refusal) bool { return r.saidIn(line) })
	}
	lines := slices.DeleteFunc(Trouble(s.Log, s.filter(), 2*maxLines), known)
	return lines[max(0, len(lines)-maxLines):]
}

// quietLog is what a log without complaints tells when there is nothing else to go by. Where Pods run, the
// manager has done its work, and the log only says so.
func (s *Snapshot) quietLog() (title string, lines []string) {
	if len(s.objects.pods) > 0 {
		return "", nil
	}
	if lines := About(s.Log, s.filter(), maxLines); len(lines) > 0 {
		return "Your manager's log", lines
	}
	if lines := Last(s.Log, s.filter(), maxLines); len(lines) > 0 {
		return "Your manager's log does not name this Memcached; it ends with", lines
	}
	return "Your manager's log", []string{"is empty"}
}

// counts is how often each text came, in the order of their first appearance.
type counts struct {
	order []string
	n     map[string]int
}

func (c *counts) add(text string, times int) {
	if c.n == nil {
		c.n = map[string]int{}
	}
	if c.n[text] == 0 {
		c.order = append(c.order, text)
	}
	c.n[text] += times
}

// lines are the texts, each with its count.
func (c *counts) lines() []string {
	var all []string
	for _, text := range c.order {
		all = append(all, text+times(c.n[text]))
	}
	return all
}

// times is how often something happened, for the end of a line.
func times(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", n)
}
