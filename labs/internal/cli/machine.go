package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

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
	_, provider, err := a.OwnedEmbedded()
	if err != nil {
		return err
	}
	return a.prepare(ctx, provider)
}

// prepare builds what the embedded control plane lacks.
func (a *App) prepare(ctx context.Context, provider *embedded.Embedded) error {
	if a.Meanwhile != "" && len(provider.Missing()) > 0 {
		a.Progress(a.Meanwhile)
	}
	_, err := provider.Programs(ctx)
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

// DoctorOptions are what the doctor is asked about this machine.
func (a *App) DoctorOptions() doctor.Options {
	return doctor.Options{
		Engine: a.Engine(), Dir: a.Root, GoVersion: goVersion(a.Root), Commands: fix.Commands(),
		NoEngine: a.Cluster == Embedded, Instead: a.embeddedFinding(),
		NodeImage: func(ctx context.Context, engine string) (ref string, stale bool, err error) {
			image, _, err := a.LocalNodeImage(ctx, engine)
			return image.Ref, image.Stale, err
		},
	}
}

// ShowFindings prints what the doctor found, a line each.
func (a *App) ShowFindings(findings []doctor.Finding) {
	for _, f := range findings {
		fmt.Fprintln(a.Out, plain.Text(f.String()))
	}
}

// embeddedFinding tells the doctor what the embedded control plane lacks, unless only kind will do.
func (a *App) embeddedFinding() func(context.Context) doctor.Finding {
	if a.Cluster == Kind {
		return nil
	}
	return func(context.Context) doctor.Finding {
		f := doctor.Finding{Name: "control plane", Detail: "embedded, and built"}
		_, provider, err := a.OwnedEmbedded()
		if err != nil {
			f.Severity, f.Detail = doctor.Error, "the embedded one cannot be built: "+plain.Line(err.Error())
		} else if missing := provider.Missing(); len(missing) > 0 {
			f.Detail = "embedded; the first lab builds it, which takes some minutes (" + strings.Join(missing, ", ") + ")"
		}
		return f
	}
}

// LocalNodeImage is the node image that the labs would use, if it is on this machine.
func (a *App) LocalNodeImage(ctx context.Context, engine string) (image nodeimage.Image, here bool, err error) {
	if here, err = nodeimage.Available(ctx, engine, a.NodeImage); err != nil || !here {
		return nodeimage.Image{}, false, err
	}
	image, err = memcached.NodeImage(engine, a.Cache, nil).Resolve(ctx, a.NodeImage)
	return image, err == nil, err
}

// goVersion is what go.mod of the checkout asks for, "" if it cannot be read.
func goVersion(root string) string {
	data, _ := os.ReadFile(filepath.Join(root, "go.mod"))
	if line := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(data); line != nil {
		return string(line[1])
	}
	return ""
}
