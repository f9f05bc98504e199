package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/setup"
	"github.com/example/operator-lab/labs/internal/plain"
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
	if a.Meanwhile != "" {
		if missing, err := provider.Missing(ctx); err == nil && len(missing) > 0 {
			a.Progress(a.Meanwhile)
		}
	}
	return provider.Prepare(ctx)
}

// SetUp does what this machine lacks for n clusters at the same time, with consent: a yes at the terminal, --yes, or a CI
// system that runs us.
func (a *App) SetUp(ctx context.Context, n int) error { return a.setUpMachine(ctx, n, false) }

// setUpMachine is thorough when it also does what only several clusters side by side, or the authors of the node image, can
// miss.
func (a *App) setUpMachine(ctx context.Context, n int, thorough bool) error {
	return setup.Run(ctx, setup.Options{
		Root: a.Root, CacheDir: a.Cache, Engine: a.Engine(), NodeImage: a.NodeImage, Thorough: thorough,
		Clusters: n, Yes: a.Consents(), Meanwhile: a.Meanwhile, In: a.In, Out: a.Err,
	})
}

// DoctorOptions are what the doctor is asked about this machine.
func (a *App) DoctorOptions() doctor.Options {
	return doctor.Options{
		Engine:    a.Engine(),
		Root:      a.Root,
		GoVersion: goVersion(a.Root),
		NodeImage: a.doctorImage,
		Pullable:  clusters.DefaultNodeImage,
		NoEngine:  a.Cluster == Embedded,
		Embedded:  a.missingPrograms(),
	}
}

// ShowFindings prints what the doctor found, a line each.
func (a *App) ShowFindings(findings []doctor.Finding) {
	for _, f := range findings {
		fmt.Fprintln(a.Out, plain.Text(f.String()))
	}
}

// missingPrograms tells the doctor what the embedded control plane lacks, unless only kind will do.
func (a *App) missingPrograms() func(context.Context) ([]string, error) {
	if a.Cluster == Kind {
		return nil
	}
	return func(ctx context.Context) ([]string, error) {
		_, provider, err := a.OwnedEmbedded()
		if err != nil {
			return nil, err
		}
		return provider.Missing(ctx)
	}
}

// doctorImage tells the doctor which node image the labs would use, if it is on this machine.
func (a *App) doctorImage(ctx context.Context, engine string) (doctor.Image, error) {
	image, _, err := a.LocalNodeImage(ctx, engine)
	return doctor.Image{Ref: image.Ref, Stale: image.Stale}, err
}

// LocalNodeImage is the node image that the labs would use, if it is on this machine.
func (a *App) LocalNodeImage(ctx context.Context, engine string) (image nodeimage.Image, here bool, err error) {
	if here, err = nodeimage.Available(ctx, engine, a.NodeImage); err != nil || !here {
		return nodeimage.Image{}, false, err
	}
	image, err = nodeimage.Resolve(ctx, engine, a.NodeImage)
	return image, err == nil, err
}

// goVersion is what go.mod of the checkout asks for, "" if it cannot be read.
func goVersion(root string) string {
	path := filepath.Join(root, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	file, err := modfile.ParseLax(path, data, nil)
	if err != nil || file.Go == nil {
		return ""
	}
	return file.Go.Version
}
