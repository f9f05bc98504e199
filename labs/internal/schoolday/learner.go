//go:build unix

package schoolday

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/discovery"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/classroom"
	"github.com/example/operator-lab/labs/internal/desk"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// learner is one of the room, at their desk.
type learner struct {
	classroom.Learner
	*desk.Desk
	tries []Try
	// saw are the last verdicts, by lab.
	saw map[int]*verdict.Result
}

func (l *learner) workspace() string { return filepath.Join(l.Handout, "workspace") }

// arrive sits down with the handout, and gets the course from the room's server.
func (d *day) arrive(ctx context.Context, l *learner) (err error) {
	home := filepath.Join(d.homes, l.ID)
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	if l.Desk, err = desk.Sit(home, filepath.Join(d.state, "handouts", l.ID+".zip"), d.machine...); err != nil {
		return err
	}
	return l.FetchCourse(ctx, d.server+"/course.tar.gz")
}

// opens says whether the key of the handout opens the learner's cluster.
func (l *learner) opens() error {
	config, err := clusters.RESTConfig(l.Desk.Kubeconfig())
	if err == nil {
		var client *discovery.DiscoveryClient
		if client, err = discovery.NewDiscoveryClientForConfig(config); err == nil {
			_, err = client.ServerVersion()
		}
	}
	if err != nil {
		return fmt.Errorf("the key of %s does not open their cluster: %w", l.ID, err)
	}
	return nil
}

// attempt saves a try in the workspace, asks for the verdict, and says whether it is the one that it should be.
func (d *day) attempt(ctx context.Context, l *learner, t Try) error {
	tree, err := t.Render(ctx, d.course, d.generator)
	if err == nil {
		err = tree.WriteTo(l.workspace())
	}
	if err != nil {
		return fmt.Errorf("write what %s answers: %w", l.ID, err)
	}
	result, err := l.Judge(ctx, t.Lab, d.settings...)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", l.ID, t, err)
	}
	l.saw[t.Lab] = result
	if wrong := mutants.Compare(d.course, t.Answer, result).Wrong; len(wrong) > 0 {
		return fmt.Errorf("%s, %s: %v", l.ID, t, wrong)
	}
	d.say("%-12s %-45s %-4s in %3.0f s", l.ID, t, result.Verdict, result.Seconds)
	return nil
}

// everyone does something for all learners, as many at a time as the machine has cores.
func (d *day) everyone(ctx context.Context, do func(ctx context.Context, l *learner) error) error {
	g, ctx := group(ctx)
	for _, l := range d.learners {
		g.Go(func() error { return do(ctx, l) })
	}
	return g.Wait()
}

// stands are the verdicts that the learner saw last on what is still in their workspace: all of them for those who
// have passed everything, and for the others the one that they are stuck with.
func (l *learner) stands() map[int]verdict.Verdict {
	stands, last := map[int]verdict.Verdict{}, l.tries[len(l.tries)-1]
	for lab, result := range l.saw {
		if lab == last.Lab || !last.Last {
			stands[lab] = result.Verdict
		}
	}
	return stands
}
