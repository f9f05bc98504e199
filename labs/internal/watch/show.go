package watch

import (
	"fmt"
	"time"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// separate draws the line above everything that a check says.
func (s *Session) separate(c *check) {
	title := fmt.Sprintf("%s · lab %d", time.Now().Format(time.TimeOnly), c.lab)
	if c.what != "" {
		title += " · " + c.what
	}
	fmt.Fprintln(s.Out)
	verdict.Rule(s.Out, title)
}

// summarize says in one line what an answer was found on, and how long the learner waited for it.
func (s *Session) summarize(r *verdict.Result, c *check) {
	verdict.Note(s.Out, fmt.Sprintf("%s · %.1f s from %s to verdict", ground(r), time.Since(c.since).Seconds(), c.after))
}

// ground says which kind of cluster a result is from.
func ground(r *verdict.Result) string {
	switch {
	case r.Cluster.Provider == "":
		return "without a cluster"
	case r.Cluster.Pooled:
		return "on a fresh " + r.Cluster.Provider + " cluster that waited in the pool"
	}
	return "on a fresh " + r.Cluster.Provider + " cluster that was created for it"
}

// prompt is the last line on the screen while nothing happens.
func (s *Session) prompt() {
	text := "waiting for a save"
	if s.Keys != nil {
		text += " — h hint · n next lab · r again · q quit"
	}
	verdict.Note(s.Err, text)
}

// say tells what happens now, as every command does.
func (s *Session) say(line string) { fmt.Fprintln(s.Err, "…", line) }

// complain tells an error, as every command does.
func (s *Session) complain(err error) { fmt.Fprintln(s.Err, "lab:", plain.Text(err.Error())) }

// saved names what was saved: one file, and how many more.
func saved(paths []string) string {
	switch len(paths) {
	case 0:
		return ""
	case 1:
		return paths[0]
	}
	return fmt.Sprintf("%s and %d more", paths[0], len(paths)-1)
}
