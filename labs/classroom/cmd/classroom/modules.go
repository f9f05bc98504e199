package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/classroom/share"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

func newModulesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "modules",
		Short: "Collect what learners need on a weak network, where the internet is good (make classroom-modules)",
		Long: `modules fills the folder .lab/share with Go modules, the course as it is committed, Go, the control plane as it is compiled
here, and the node image if there is one. classroom serve offers all of it. It takes some minutes, and 1.5 GB of disk.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.collect(cmd.Context()) },
	}
}

func (a *app) share() share.Folder {
	dir := filepath.Join(a.State, "share")
	return share.Folder{Dir: filepath.Join(dir, "files"), Modules: filepath.Join(dir, "modules")}
}

func (a *app) collect(ctx context.Context) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	folder := a.share()
	a.Progress("modules, in " + folder.Modules)
	if err := share.Modules(ctx, c, folder.Modules, a.Root); err != nil {
		return err
	}
	a.Progress("the course")
	if err := folder.PackCourse(ctx, a.Root); err != nil {
		return err
	}
	a.Progress("Go")
	if err := folder.PackGo(ctx, a.Root); err != nil {
		return err
	}
	programs, err := (&components.Builder{CacheDir: a.Cache, Log: a.Progress}).Build(ctx, append(embedded.Components(), "kubectl")...)
	if err != nil {
		return err
	}
	var paths []string
	for _, program := range programs {
		path, err := filepath.Rel(a.Cache, program)
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	a.Progress("the control plane")
	if err := folder.PackFiles(ctx, roomclient.ControlPlaneFile(), a.Cache, paths...); err != nil {
		return err
	}
	if image, here, err := a.LocalNodeImage(ctx, a.Engine()); err == nil && here {
		a.Progress("the node image")
		if err := folder.PackImage(ctx, a.Engine(), image.Ref); err != nil {
			return err
		}
	}
	files, err := folder.Files()
	for _, f := range files {
		fmt.Fprintf(a.Out, "%s  %s, %d MB\n", f.SHA256, f.Name, f.Size/1e6)
	}
	return err
}
