//go:build unix

package schoolday

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/labs/internal/classroom"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/desk"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Options are what a day is like.
type Options struct {
	// Root is the instructor's checkout.
	Root string
	// Learners is how many there are.
	Learners int
	// Cluster is the kind of the learners' own clusters, "kind" or "embedded".
	Cluster string
	// Verdicts is the kind of cluster that checks run on; "" leaves it to the handout.
	Verdicts string
	// Seed draws the wrong answers.
	Seed int64
	// Out is told what happens.
	Out io.Writer
}

// day is one that goes on.
type day struct {
	Options
	*diary
	state     string   // of the instructor's checkout
	logs      string   // what the instructor's commands printed
	homes     string   // of the learners
	machine   []string // what learners' shells find of this machine
	settings  []string // what learners add to make lab-N
	course    *course.Course
	generator string // controller-gen, for wrong answers that ran it
	learners  []*learner
	server    string // the room's address
	board     *board
	before    world
}

// ErrOccupied is the error for a checkout that has a room of its own: the day would end it.
var ErrOccupied = errors.New("a day is played in a clone of its own")

// Run plays the day and tells it to Out. Its error is the first thing that was not as it should be; what was made is
// removed in any case. The board of a day that went well is removed, too, and that of another one stays to be looked at.
func Run(ctx context.Context, o Options) error {
	d := &day{Options: o, diary: newDiary(o.Out), state: filepath.Join(o.Root, ".lab")}
	if err := d.vacant(); err != nil {
		return err
	}
	d.logs = filepath.Join(d.state, "schoolday")
	if o.Verdicts != "" {
		d.settings = []string{"CLUSTER=" + o.Verdicts}
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	err := d.happens(ctx)
	if err = errors.Join(err, d.ends(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return os.RemoveAll(d.boardDir())
}

func (d *day) boardDir() string { return filepath.Join(d.state, "board") }

// vacant says that nobody else has a room here, nor their results.
func (d *day) vacant() error {
	r, err := classroom.Load(d.state)
	if err != nil {
		return err
	}
	if n := len(r.Learners); n > 0 {
		return fmt.Errorf("%w: %d learners are in the room of this one; make classroom-down ends it", ErrOccupied, n)
	}
	if _, err := os.Stat(d.boardDir()); err == nil {
		return fmt.Errorf("%w: a board is in %s, which its learners would get on; delete it when nobody needs it", ErrOccupied, d.boardDir())
	}
	return nil
}

// begin looks at the machine before anything happens.
func (d *day) begin(ctx context.Context) (err error) {
	if d.course, err = course.Load(d.Root); err != nil {
		return err
	}
	caches, err := desk.GoCaches(ctx)
	if err != nil {
		return err
	}
	d.machine = append(caches, desk.Engine()...)
	if cache := os.Getenv("LAB_CACHE"); cache != "" {
		d.machine = append(d.machine, "LAB_CACHE="+cache)
	} else if cache, err := os.UserCacheDir(); err == nil {
		d.machine = append(d.machine, "LAB_CACHE="+filepath.Join(cache, "operator-lab"))
	}
	if err := errors.Join(os.RemoveAll(d.logs), os.MkdirAll(d.logs, 0o700)); err != nil {
		return err
	}
	if d.before, err = look(ctx, d.Root); err != nil {
		return err
	}
	d.homes, err = os.MkdirTemp("", "schoolday-")
	return err
}

// happens is the day until everybody goes home.
func (d *day) happens(ctx context.Context) error {
	steps := []struct {
		what string
		do   func(ctx context.Context) error
	}{
		{fmt.Sprintf("a room of %d is set up", d.Learners), d.setUp},
		{"handouts are written, and the server begins", d.open},
		{"the learners arrive", d.letIn},
	}
	for _, step := range steps {
		if err := d.time(step.what, func() error { return step.do(ctx) }); err != nil {
			return err
		}
	}
	for _, lab := range d.course.Labs {
		if err := d.time(fmt.Sprintf("lab %d: %s", lab.Number, lab.Title), func() error { return d.round(ctx, lab.Number) }); err != nil {
			return err
		}
		if lab.Number == (len(d.course.Labs)+1)/2 {
			if err := d.time("a node dies, and the engine is restarted", func() error { return d.accidents(ctx) }); err != nil {
				return err
			}
		}
	}
	return d.time("everything is graded", func() error { return d.grade(ctx) })
}

func (d *day) setUp(ctx context.Context) error {
	return d.instructor(ctx, fmt.Sprintf("classroom N=%d CLUSTER=%s", d.Learners, d.Cluster))
}

// open writes the handouts for the address that the server then has.
func (d *day) open(ctx context.Context) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	d.server = fmt.Sprintf("http://127.0.0.1:%d", port)
	if err := d.instructor(ctx, "classroom-handouts SERVER="+d.server); err != nil {
		return err
	}
	if d.board, err = d.serve(ctx, port); err != nil {
		return err
	}
	return d.board.open(ctx)
}

// letIn brings everybody to their seats, with what they will try.
func (d *day) letIn(ctx context.Context) error {
	r, err := classroom.Load(d.state)
	if err != nil {
		return err
	}
	all, err := mutants.Load(d.course)
	if err != nil {
		return err
	}
	tools, err := verdict.BuildTools(ctx, d.Root, d.state)
	if err != nil {
		return err
	}
	d.generator = tools.ControllerGen
	plan := Plan(d.course, all, len(r.Learners), d.Seed)
	for i, l := range r.Learners {
		d.learners = append(d.learners, &learner{Learner: l, tries: plan[i], saw: map[int]*verdict.Result{}})
	}
	return d.everyone(ctx, func(ctx context.Context, l *learner) error {
		if err := d.arrive(ctx, l); err != nil {
			return fmt.Errorf("%s cannot begin: %w", l.ID, err)
		}
		return l.opens()
	})
}

// round has everybody work on one lab, and looks at the board.
func (d *day) round(ctx context.Context, lab int) error {
	err := d.everyone(ctx, func(ctx context.Context, l *learner) error {
		for _, t := range l.tries {
			if t.Lab != lab {
				continue
			}
			if err := d.attempt(ctx, l, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.board.shows(ctx, d.learners)
}

// accidents come one after the other, and the room is mended after both.
func (d *day) accidents(ctx context.Context) error {
	for _, accident := range []func(context.Context) error{d.killNode, d.restartEngine} {
		if err := accident(ctx); err != nil {
			return err
		}
	}
	if err := d.setUp(ctx); err != nil {
		return err
	}
	if err := d.everyone(ctx, func(_ context.Context, l *learner) error { return l.opens() }); err != nil {
		return err
	}
	return d.board.shows(ctx, d.learners)
}

// ends removes the room, and says what is left of it.
func (d *day) ends(ctx context.Context) error {
	err := d.time("the room is removed", func() error {
		return errors.Join(d.board.close(), d.instructor(ctx, "classroom-down YES=1"), os.RemoveAll(d.homes))
	})
	d.table()
	after, lookErr := look(ctx, d.Root)
	if err := errors.Join(err, lookErr); err != nil {
		return err
	}
	return d.before.same(after)
}

// group runs as many at a time as the machine has cores: a verdict takes one.
func group(ctx context.Context) (*errgroup.Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	return g, ctx
}
