package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
)

// words say what happens to a cluster.
var words = map[room.Step]string{
	room.Creating:   "starting a cluster",
	room.Restarting: "the cluster does not work; starting it again, with all that is in it",
	room.Replacing:  "that did not help; making a new one, and what was in the old one is lost",
	room.Retrying:   "no luck yet; once more when the others have had their turn",
	room.Untouched:  "ready, and left alone",
	room.Created:    "ready",
	room.Restarted:  "ready again, with all that was in it",
	room.Replaced:   "ready, a new cluster with a new key; what was in the old one is lost",
	room.Removed:    "removed",
	room.Failed:     "failed",
}

// reportSteps tells of the steps in the learners' names, a line each, and counts those who are done.
func (c *roomCommand) reportSteps(r *roster.Room) func(name string, step room.Step, err error) {
	learners := map[string]string{}
	for _, l := range r.Learners {
		learners[l.Cluster] = l.Name
	}
	done := 0
	return func(name string, step room.Step, err error) {
		who, ok := learners[name]
		if !ok {
			who = name
		}
		line := who + ": " + words[step]
		if err != nil {
			line += " (" + firstLine(err) + ")"
		}
		switch step {
		case room.Creating, room.Restarting, room.Replacing, room.Retrying:
		default:
			done++
			line = fmt.Sprintf("%s [%d of %d]", line, done, max(len(r.Learners), done))
		}
		c.Progress(line)
	}
}

// lineLimit is how much of an error is shown, in characters: a learner who administers a cluster decides what its nodes say.
const lineLimit = 300

// firstLine keeps a learner's line one line.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return plain.Short(line[:min(len(line), 4*lineLimit)], lineLimit)
}

// report says what became of the room.
func (c *roomCommand) report(ctx context.Context, r *roster.Room, results []room.Result) error {
	tally, failed := map[room.Step]int{}, 0
	for i, result := range results {
		tally[result.Step]++
		if result.Step == room.Failed {
			failed++
			continue
		}
		if err := r.Learners[i].Link(c.State); err != nil {
			c.Progress(err.Error()) // the cluster is there all the same
		}
	}
	ready := len(results) - failed
	if err := ctx.Err(); err != nil {
		c.reportStuck(r, results)
		c.Progress(fmt.Sprintf("stopped: %d of %s ready, and stay; make classroom goes on",
			ready, cli.Count(len(results), "cluster")))
		return errors.Join(err, exit.ErrTold)
	}
	fmt.Fprintf(c.Out, "%d of %s ready%s.\n", ready, cli.Count(len(results), "cluster"), share(tally))
	if failed > 0 {
		c.reportFailed(r, results)
		return exit.Environment(exit.ErrTold)
	}
	fmt.Fprintf(c.Out, `
  make classroom-status   how they are
  make classroom          starts again what stopped; works after a reboot, too
  make classroom-down     removes them, and all that is in them

Each has a kubeconfig that opens that cluster and no other:

  export KUBECONFIG=%s
`, r.Learners[0].Kubeconfig(c.State))
	if r.Lend > 0 {
		fmt.Fprintf(c.Out, "\nBeside them the room lends %s, while make classroom-serve runs.\n", lends(r))
	}
	return nil
}

// reportStuck tells of what an interrupted creation could not take away again.
func (c *roomCommand) reportStuck(r *roster.Room, results []room.Result) {
	for i, result := range results {
		if p, ok := errors.AsType[*clusters.Problem](result.Err); ok {
			c.Progress(r.Learners[i].Name + ": " + firstLine(p))
		}
	}
}

// share says which of the clusters are ready because of what.
func share(tally map[room.Step]int) string {
	var parts []string
	for _, part := range []struct {
		step room.Step
		word string
	}{
		{room.Created, "new"}, {room.Restarted, "started again"}, {room.Replaced, "made anew, with nothing in it"},
		{room.Untouched, "left alone"},
	} {
		if n := tally[part.step]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.word))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (c *roomCommand) reportFailed(r *roster.Room, results []room.Result) {
	fmt.Fprintln(c.Out, "\nWithout a cluster that works:")
	for i, result := range results {
		if result.Step == room.Failed {
			fmt.Fprintf(c.Out, "  %s: %s\n", r.Learners[i].Name, firstLine(result.Err))
		}
	}
	fmt.Fprintln(c.Out, "\nmake doctor looks for what is wrong with this machine. make classroom tries these again, "+
		"and leaves the others alone.")
}
