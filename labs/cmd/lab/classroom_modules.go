package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/goproxy"
	"github.com/example/operator-lab/labs/internal/modules"
)

// The values of --toolchains that are no toolchains.
const (
	neededToolchain = "needed"
	noToolchain     = "none"
)

// classroomModules is `lab classroom modules`.
type classroomModules struct {
	*app
	toolchains []string
	platforms  []string
	check      bool
}

func newClassroomModulesCommand(a *app) *cobra.Command {
	m := &classroomModules{app: a}
	cmd := &cobra.Command{
		Use:   "modules",
		Short: "Download the Go modules and toolchains that a room needs (make classroom-modules)",
		Long: `modules fills this machine's module cache with what learners' machines download for the labs: the modules of
the workspace and its tools, of the lab and its suite, and of the embedded control plane (not with --cluster kind), and
the toolchain that an older Go asks for, for Linux, macOS and Windows. lab classroom serve then serves them to the room.

Run it where the internet is good. What is there is not downloaded again, and an interrupt loses nothing that has
arrived. --check proves that it is enough: a Go command with an empty cache tries it with nothing else in reach.`,
		Args: noArguments("classroom modules"),
		RunE: func(cmd *cobra.Command, _ []string) error { return m.run(cmd.Context()) },
	}
	cmd.Flags().StringSliceVar(&m.toolchains, "toolchains", []string{neededToolchain},
		"Go toolchains, such as go1.26.0; needed: the one that go.mod makes an older Go fetch; none")
	cmd.Flags().StringSliceVar(&m.platforms, "platforms", modules.Platforms(), "platforms of the toolchains")
	cmd.Flags().BoolVar(&m.check, "check", false,
		"prove that a machine with an empty cache needs nothing else; takes some minutes, and 2 GB of disk meanwhile")
	return cmd
}

func (m *classroomModules) run(ctx context.Context) error {
	for _, p := range m.platforms {
		if !slices.Contains(modules.Platforms(), p) {
			return exit.Usage("--platforms %s is not known: use some of %s", p, strings.Join(modules.Platforms(), ","))
		}
	}
	needs, done, err := m.moduleNeeds()
	if err != nil {
		return err
	}
	defer done()
	toolchains, err := m.wanted(needs)
	if err != nil {
		return err
	}
	cache, err := modules.FindCache(ctx)
	if err != nil {
		return exit.Environment(err)
	}
	stock, err := modules.Fill(ctx, needs, m.progress)
	if err != nil {
		return incomplete(err)
	}
	tools, err := cache.FillToolchains(ctx, toolchains, m.platforms, m.progress)
	if err != nil {
		return incomplete(err)
	}
	if m.check {
		if err := m.prove(ctx, cache, needs, toolchains); err != nil {
			return exit.Environment(err)
		}
	}
	m.tell(cache, stock, tools)
	return nil
}

// tell says what there is now.
func (m *classroomModules) tell(cache modules.Cache, stock, tools modules.Stock) {
	fmt.Fprintf(m.out, "%s and %s, %s, are in %s\n", count(len(stock), "module"), count(len(tools), "toolchain"),
		modules.Megabytes(stock.Bytes()+tools.Bytes()), cache.Downloads)
	fmt.Fprintln(m.out, "`make classroom-serve ADDRESS=ip` serves them to the room.")
}

// incomplete is what is said when not everything has arrived.
func incomplete(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return exit.Environment(fmt.Errorf(
		"%w; what has arrived stays: run lab classroom modules again when the internet is in reach", err))
}

// moduleNeeds are what learners compile; done removes what was rendered for it.
func (a *app) moduleNeeds() (needs []modules.Need, done func(), err error) {
	c, err := a.course()
	if err != nil {
		return nil, nil, err
	}
	scratch, err := os.MkdirTemp("", "lab-modules-")
	if err != nil {
		return nil, nil, exit.Environment(fmt.Errorf("look what the labs need: %w", err))
	}
	done = func() { _ = os.RemoveAll(scratch) }
	needs, err = modules.Needs(c, scratch, a.cluster != onKind)
	if err != nil {
		done()
		return nil, nil, exit.Usage("%v", err)
	}
	return needs, done, nil
}

// wanted are the toolchains that were asked for.
func (m *classroomModules) wanted(needs []modules.Need) ([]string, error) {
	var names []string
	for _, name := range m.toolchains {
		switch name {
		case noToolchain:
			continue
		case neededToolchain:
			needed, err := modules.Toolchain(needs)
			if err != nil {
				return nil, exit.Usage("%v", err)
			}
			name = needed
		}
		if err := modules.CheckToolchain(name); err != nil {
			return nil, exit.Usage("--toolchains: %v; use such names, needed, or none", err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// prove serves the cache on loopback for as long as a check takes, with a database of checksums of its own, so that a
// room that is being served is not disturbed.
func (m *classroomModules) prove(
	ctx context.Context, cache modules.Cache, needs []modules.Need, toolchains []string,
) (err error) {
	dir, err := os.MkdirTemp("", "lab-check-sums-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sums, err := goproxy.OpenSums(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sums.Close()) }()
	proxy, err := goproxy.New(cache.Downloads, goproxy.Options{Sums: sums, Private: cache.Private, Log: m.progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: proxy, ReadHeaderTimeout: proofHeaderTimeout}
	go func() { _ = srv.Serve(listener) }() // until it is closed
	defer srv.Close()
	toolchain, platform := "", runtime.GOOS+"/"+runtime.GOARCH
	if len(toolchains) > 0 && slices.Contains(m.platforms, platform) {
		toolchain = toolchains[0]
	}
	room := modules.Room{Env: goproxy.Env("http://"+listener.Addr().String(), sums.Key())}
	return room.Check(ctx, os.TempDir(), needs, toolchain, platform, m.progress)
}

// proofHeaderTimeout is for a Go command on the same machine, which may be busy compiling.
const proofHeaderTimeout = time.Minute

// sumsDir is where the database of checksums is kept, and its key. It outlives a room: learners' machines remember it.
func (a *app) sumsDir() string { return filepath.Join(a.state, "sums") }
