package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

// joinPort is where a classroom is joined that names no port.
const joinPort = "7777"

func newJoinCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "join ROOM KEY NAME",
		Short: "Join a classroom: your verdicts go to its board (make join ROOM=address KEY=key NAME=you)",
		Args:  cli.Arguments(3, 3, "join ROOM KEY NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.join(cmd.Context(), args[0], args[1], strings.TrimSpace(args[2]))
		},
	}
}

func (a *app) join(ctx context.Context, address, key, name string) error {
	if address == "" || name == "" {
		return exit.Usage("make join ROOM=address KEY=key NAME=you: your instructor shows address and key")
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, joinPort)
	}
	key, err := roomclient.ParseKey(key)
	if err != nil {
		return exit.Usage("%w", err)
	}
	r, answer, err := roomclient.Join(ctx, a.State, roomclient.Room{Address: address, Key: key, Name: name})
	if refused, ok := errors.AsType[*roomclient.Refusal](err); ok {
		return exit.Usage("%w", refused)
	}
	if err != nil {
		return exit.Environment(fmt.Errorf("join the classroom at %s: %w", address, err))
	}
	if err := a.takeControlPlane(ctx, answer.Downloads); err != nil {
		a.Progress(fmt.Sprintf("the control plane of the classroom cannot be used, so it is compiled here: %v", err))
	}
	fmt.Fprintf(a.Out, "You are %s here. Your verdicts go to the board; make lab-1 begins.\n", r.Name)
	if len(answer.Kubeconfig) > 0 {
		fmt.Fprintf(a.Out, "Your cluster: export KUBECONFIG=%s\n", filepath.Join(a.State, roomclient.KubeconfigFile))
	}
	return nil
}

// takeControlPlane gets the programs of the embedded control plane, unless they are here.
func (a *app) takeControlPlane(ctx context.Context, downloads []roomclient.Download) error {
	_, provider, err := a.OwnedEmbedded()
	if err != nil {
		return err
	}
	if len(provider.Missing()) == 0 {
		return nil
	}
	for _, d := range downloads {
		if d.Name == roomclient.ControlPlaneFile() {
			a.Progress(fmt.Sprintf("getting the control plane, %d MB", d.Size/1e6))
			if err := d.Unpack(ctx, a.Cache); err != nil {
				return err
			}
			if len(provider.Missing()) > 0 {
				err = errors.New("it is of another version of Go, or of the course")
			}
			return err
		}
	}
	return nil // the classroom has none
}

// useRoomsModules has this program's Go commands take modules from the classroom that was joined.
func (a *app) useRoomsModules(ctx context.Context) {
	r, err := roomclient.Load(a.State)
	if err != nil || r.Modules == "" {
		return
	}
	proxy, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		return // whoever needs Go says so
	}
	for _, entry := range r.Environ(strings.TrimSpace(string(proxy))) {
		name, value, _ := strings.Cut(entry, "=")
		_ = os.Setenv(name, value)
	}
}
