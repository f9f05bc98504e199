package cli

import (
	"context"
	"runtime"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/fix"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/setup"
)

// SetUpChosen sets up what clusters of the chosen kind need: kind, unless embedded is asked for.
func (a *App) SetUpChosen(ctx context.Context) error {
	if a.Cluster != Embedded {
		return a.setUpMachine(ctx, 1, true)
	}
	owned, err := a.OwnedEmbedded()
	if err != nil {
		return err
	}
	return a.prepare(ctx, owned)
}

// prepare builds what the embedded control plane lacks.
func (a *App) prepare(ctx context.Context, owned *clusters.Manager) error {
	if a.Meanwhile != "" && len(Missing(owned)) > 0 {
		a.Progress(a.Meanwhile)
	}
	_, err := owned.Provider().(*embedded.Embedded).Programs(ctx)
	return err
}

// SetUp does what this machine lacks for n clusters at the same time, with consent: a yes at the terminal, --yes, or a CI
// system that runs us.
func (a *App) SetUp(ctx context.Context, n int) error { return a.setUpMachine(ctx, n, false) }

// setUpMachine with all also does what only several clusters side by side, or the authors of the node image, can miss.
func (a *App) setUpMachine(ctx context.Context, n int, all bool) error {
	o := setup.Options{
		Root: a.Root, CacheDir: a.Cache, Engine: a.Engine(), NodeImage: a.NodeImage, All: all,
		Images:   memcached.NodeImage("", "", nil).Images,
		Clusters: n, Yes: a.Consents(), Consent: "make setup YES=1", Out: a.Err,
	}
	if a.AtTerminal() {
		o.In = a.In
	}
	return setup.Run(ctx, o)
}

// DoctorOptions are what the doctor is asked about this machine. Go is that of the checkout, see [Main].
func (a *App) DoctorOptions() doctor.Options {
	o := doctor.Options{
		Engine: a.Engine(), Dir: a.Root, GoVersion: strings.TrimPrefix(runtime.Version(), "go"), Commands: fix.Commands(),
		NoEngine: a.Cluster == Embedded, Instead: a.embeddedFinding,
		NodeImage: func(ctx context.Context, engine string) (ref string, stale bool, err error) {
			image, _, err := a.LocalNodeImage(ctx, engine)
			return image.Ref, image.Stale, err
		},
	}
	if a.Cluster == Kind {
		o.Instead = nil // nothing else will do
	}
	return o
}

// embeddedFinding tells the doctor what the embedded control plane lacks.
func (a *App) embeddedFinding(context.Context) doctor.Finding {
	f := doctor.Finding{Name: "control plane", Detail: "embedded, and built"}
	owned, err := a.OwnedEmbedded()
	if err != nil {
		f.Severity, f.Detail = doctor.Error, "the embedded one cannot be built: "+plain.Line(err.Error())
	} else if missing := Missing(owned); len(missing) > 0 {
		f.Detail = "embedded; the first lab builds it, which takes some minutes (" + strings.Join(missing, ", ") + ")"
	}
	return f
}

// LocalNodeImage is the node image that the labs would use, if it is on this machine.
func (a *App) LocalNodeImage(ctx context.Context, engine string) (image nodeimage.Image, here bool, err error) {
	if here, err = nodeimage.Available(ctx, engine, a.NodeImage); err != nil || !here {
		return nodeimage.Image{}, false, err
	}
	image, err = memcached.NodeImage(engine, a.Cache, nil).Resolve(ctx, a.NodeImage)
	return image, err == nil, err
}
