package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
)

// newDoctorCommand is `lab doctor`.
func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what on this machine would stop a lab, and the command that mends it",
		Long: `Look at the container engine, the kernel's settings, disk, memory, the node image, Go and the clock, and say
in one line each what was found and which command mends it. Nothing is changed.

The exit code is 3 when a lab could not run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := doctor.Run(cmd.Context(), a.doctorOptions())
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			for _, finding := range findings {
				fmt.Fprintln(a.out, finding)
			}
			return doctor.Problem(findings)
		},
	}
}

func (a *app) doctorOptions() doctor.Options {
	return doctor.Options{
		Engine:    a.engine(),
		Root:      a.root,
		GoVersion: goVersion(a.root),
		NodeImage: a.localNodeImage,
		Pullable:  clusters.DefaultNodeImage,
		NoEngine:  a.cluster == onEmbedded || a.cluster == onRoom,
		Embedded:  a.missingPrograms(),
	}
}

// missingPrograms tells the doctor what the embedded control plane lacks, unless only kind will do.
func (a *app) missingPrograms() func(context.Context) ([]string, error) {
	if a.cluster == onKind {
		return nil
	}
	return func(ctx context.Context) ([]string, error) {
		_, provider, err := a.ownedEmbedded()
		if err != nil {
			return nil, err
		}
		return provider.Missing(ctx)
	}
}

// localNodeImage tells the doctor which node image the labs would use, if it is on this machine.
func (a *app) localNodeImage(ctx context.Context, engine string) (doctor.Image, error) {
	image, _, err := a.imageHere(ctx, engine)
	return doctor.Image{Ref: image.Ref, Stale: image.Stale}, err
}

// imageHere is the node image that the labs would use, if it is on this machine.
func (a *app) imageHere(ctx context.Context, engine string) (image nodeimage.Image, here bool, err error) {
	if here, err = nodeimage.Available(ctx, engine, a.nodeImage); err != nil || !here {
		return nodeimage.Image{}, false, err
	}
	image, err = nodeimage.Resolve(ctx, engine, a.nodeImage)
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
