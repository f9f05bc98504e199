package nodeimage

import (
	"cmp"
	"context"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/engine"
)

const (
	releaseTimeout = 30 * time.Second // for the removal of what an interrupted build leaves in the engine
	pullTimeout    = 15 * time.Minute // for about 400 MB over a slow line
)

// engine runs the container engine's command line and returns what it printed.
func (o Options) engine(ctx context.Context, args ...string) (string, error) {
	return engine.Run(ctx, cmp.Or(o.Engine, "docker"), args...)
}

// release cleans up, also when ctx has ended.
func (o Options) release(ctx context.Context, args ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, _ = o.engine(ctx, args...)
}

// inspect returns nil when the engine has no image of that name.
func (o Options) inspect(ctx context.Context, ref string) (*engine.Image, error) {
	found, err := engine.Inspect(ctx, cmp.Or(o.Engine, "docker"), ref)
	if err != nil && ctx.Err() == nil {
		return nil, &clusters.Problem{What: "no container engine", Reason: clusters.ErrNoEngine, Err: err}
	}
	return found, err
}

// pull inspects an image, and pulls it first when it is not on this machine. It returns nil when it cannot be pulled.
func (o Options) pull(ctx context.Context, ref string) (*engine.Image, error) {
	found, err := o.inspect(ctx, ref)
	if err != nil || found != nil {
		return found, err
	}
	pullCtx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	o.log("pulling " + ref + ": node images have about 400 MB, which take one minute at 50 Mbit/s and five at 10")
	if _, err := o.engine(pullCtx, "pull", "--quiet", ref); err != nil {
		return nil, ctx.Err()
	}
	return o.inspect(ctx, ref)
}

func (o Options) log(line string) {
	if o.Log != nil {
		o.Log(line)
	}
}
