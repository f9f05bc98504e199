package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

// doctor says what would stop a lab.
func (a *app) doctor(ctx context.Context, _ []string) error {
	findings := doctor.Run(ctx, a.DoctorOptions())
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, f := range findings {
		text := plain.Text(f.String())
		fmt.Fprint(a.Out, plain.Fold(text[:27], text[27:])) // what it says stands in a column
	}
	return doctor.Problem(findings)
}

func (a *app) setUp(ctx context.Context, _ []string) error {
	if a.Cluster != cli.Embedded {
		a.Cluster = cli.Kind
	}
	if _, _, err := a.Ready(ctx, 16); err != nil { // the doctor wants inotify instances for 16 clusters of kind
		return err
	}
	a.Say("This machine has what lab clusters need.")
	return nil
}

// envtest puts the programs that the workspace's unit tests start where `make setup-envtest` there would put its download.
func (a *app) envtest(ctx context.Context, _ []string) error {
	c, err := a.Course()
	if err == nil {
		err = a.ensure(ctx, c)
	}
	if err != nil {
		return err
	}
	builder := components.Builder{CacheDir: a.Cache, OS: runtime.GOOS, Download: true, Log: a.Progress}
	built, err := builder.Build(ctx, "kube-apiserver", "etcd")
	dir := filepath.Join(a.workspace, "bin", "k8s", components.Version("kube-apiserver")[1:]+"-"+runtime.GOOS+"-"+runtime.GOARCH)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("prepare the unit tests: %w", err)
	}
	for name, program := range built {
		file := filepath.Join(dir, name)
		_ = os.Remove(file)                // what another run left
		if os.Link(program, file) != nil { // it outlives the cache, which may be on another file system
			if err := os.Symlink(program, file); err != nil {
				return fmt.Errorf("prepare the unit tests: %w", err)
			}
		}
	}
	fmt.Fprintf(a.Out, "kube-apiserver and etcd are in %s. `make test`, in your workspace, runs your unit tests on them.\n", dir)
	return nil
}

func newRegistryCommand(a *app) *cobra.Command {
	var port uint16
	var refuse bool
	cmd := cli.Command("registry", "A registry to try lab 10 with; it prints requests (make registry)", cobra.NoArgs,
		func(ctx context.Context, _ []string) error {
			r, err := registry.Start(fmt.Sprintf("127.0.0.1:%d", port), func(q registry.Request) { fmt.Fprintln(a.Out, requestLine(q)) })
			if err != nil {
				return exit.Usage("%v; make registry PORT=0 takes any that is free", err)
			}
			defer r.Close()
			if refuse {
				r.Behave("", registry.Behaviour{Statuses: []int{http.StatusUnprocessableEntity}, Only: http.MethodPut})
			}
			a.Say("The registry is at %s until you press Ctrl-C. In another terminal:\n\n  REGISTRY_URL=%s make run\n\n", r.URL(), r.URL())
			<-ctx.Done()
			return nil
		})
	cmd.Flags().Uint16Var(&port, "port", 8090, "where to listen on this machine; 0 is any free port")
	cmd.Flags().BoolVar(&refuse, "refuse", false, "answer each PUT with 422")
	return cmd
}

// requestLine is what is printed of a request.
func requestLine(q registry.Request) string {
	line := fmt.Sprintf("%s  %-6s %s  %d", q.Ended.Format(time.TimeOnly), q.Method, q.UID, q.Status)
	if q.Method == http.MethodPut {
		line += fmt.Sprintf("  %s/%s, size %d", q.Entry.Namespace, q.Entry.Name, q.Entry.Size)
	}
	return plain.Line(line)
}

func (a *app) join(ctx context.Context, args []string) error {
	address, name := args[0], strings.TrimSpace(args[2])
	if _, _, err := net.SplitHostPort(address); err != nil || name == "" {
		return exit.Usage("make join ROOM=address:port KEY=key NAME=you: your instructor shows address and key")
	}
	key, err := roomclient.ParseKey(args[1])
	if err != nil {
		return exit.Usage("%w", err)
	}
	r, answer, err := roomclient.Join(ctx, a.State, roomclient.Room{Address: address, Key: key, Name: name})
	if refused, ok := errors.AsType[*roomclient.Refusal](err); ok {
		return exit.Usage("%w", refused)
	}
	if err != nil {
		return fmt.Errorf("join the classroom at %s: %w", address, err)
	}
	if err := a.takeControlPlane(ctx, answer.Downloads); err != nil {
		a.Notice(fmt.Sprintf("the control plane of the classroom cannot be used, so it is compiled here: %v", err))
	}
	a.Say("You are %s here. Your verdicts go to the board; make lab-1 begins.", r.Name)
	if file := filepath.Join(a.State, "classroom.kubeconfig"); len(answer.Kubeconfig) > 0 {
		a.Say("Your cluster: export KUBECONFIG=%s", file)
		return os.WriteFile(file, answer.Kubeconfig, 0o600)
	}
	return nil
}

// takeControlPlane gets the programs of the embedded control plane, unless they are here or the classroom has none.
func (a *app) takeControlPlane(ctx context.Context, downloads []roomclient.Download) error {
	owned, err := a.Owned(cli.Embedded)
	if err != nil || len(cli.Missing(owned)) == 0 {
		return err
	}
	i := slices.IndexFunc(downloads, func(d roomclient.Download) bool { return d.Name == roomclient.ControlPlaneFile() })
	if i < 0 {
		return nil
	}
	a.Progress(fmt.Sprintf("getting the control plane, %d MB", downloads[i].Size/1e6))
	return downloads[i].Unpack(ctx, a.Cache)
}

// useRoomsModules has this program's Go commands download modules from the classroom that was joined.
func (a *app) useRoomsModules(ctx context.Context) {
	r, err := roomclient.Load(a.State)
	if err != nil || r.Modules == "" {
		return
	}
	proxy, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		return // the first command that needs Go says so
	}
	for _, entry := range r.Environ(strings.TrimSpace(string(proxy))) {
		name, value, _ := strings.Cut(entry, "=")
		_ = os.Setenv(name, value)
	}
}
