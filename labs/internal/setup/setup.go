// Package setup brings what a machine lacks for clusters of kind: a container engine, kernel settings, a node image. Each needs
// root or minutes, so it asks first.
package setup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/engine"
	"github.com/example/operator-lab/clusters/nodeimage"
)

// Options say what to set up and whom to ask.
type Options struct {
	Root      string                 // the checkout, whose scripts/engine.sh is used
	NodeImage string                 // the requested node image, which is never built; "" is any
	Images    nodeimage.Options      // how a node image is found and built, and the container engine
	Clusters  int                    // how many will run side by side
	Agree     func(plan string) bool // asks for consent to the plan
	Out       io.Writer              // gets what scripts/engine.sh prints

	inotifyFile string // in place of the kernel's, in tests
}

// Run does what is missing, and nothing when nothing is. It asks once, for all of it. What cannot be fixed, and missing
// consent, is a [*clusters.Problem].
func Run(ctx context.Context, o Options) error {
	o.inotifyFile = cmp.Or(o.inotifyFile, "/proc/sys/fs/inotify/max_user_instances")
	engineErr := engine.Ping(ctx, o.Images.Engine)
	noImage, imageErr := o.noImage(ctx, engineErr == nil)
	if err := cmp.Or(o.unfixable(engineErr), imageErr); err != nil {
		return err
	}
	few := o.fewInstances()
	var plan []string // what will be done, and what it costs
	if engineErr != nil {
		plan = append(plan, "container engine: installs docker.io, iptables, iproute2 and jq with apt-get, and starts dockerd (root, 1 minute)")
	}
	if few {
		plan = append(plan, "kernel settings: raises fs.inotify.max_user_instances and max_user_watches until the next boot (root)")
	}
	if noImage {
		plan = append(plan, "node image: pulls kind's, or installs debootstrap and builds one from source (root, 10 minutes on two cores)")
	}
	if len(plan) == 0 {
		return nil
	}
	if !o.Agree("This machine lacks something that clusters need. To be done:\n  " + strings.Join(plan, "\n  ")) {
		return &clusters.Problem{What: "not set up, because nobody agreed to it", Fix: "make setup YES=1"}
	}
	var err error
	if engineErr != nil {
		err = o.startEngine(ctx)
	}
	if err == nil && few {
		err = o.engineScript(ctx, "sysctl")
	}
	if err == nil && noImage {
		err = o.provideImage(ctx)
	}
	return err
}

// unfixable is why scripts/engine.sh cannot help with an engine that does not answer, nil if it can.
func (o Options) unfixable(pingErr error) error {
	switch host := os.Getenv("DOCKER_HOST"); {
	case pingErr == nil:
	case strings.Contains(pingErr.Error(), "permission denied"):
		return &clusters.Problem{What: "you may not use the container engine", Fix: "sudo usermod -aG docker $USER, then log in again", Err: pingErr}
	case o.Images.Engine != "docker":
		return &clusters.Problem{What: o.Images.Engine + " does not answer, and only docker can be set up here", Err: pingErr}
	case host != "":
		return &clusters.Problem{What: "no engine answers at DOCKER_HOST=" + host, Fix: "unset DOCKER_HOST, or start that engine", Err: pingErr}
	}
	return nil
}

// fewInstances says whether the kernel grants fewer inotify instances than the clusters need.
func (o Options) fewInstances() bool {
	var granted uint64
	data, err := os.ReadFile(o.inotifyFile) // there is none where the kernel is not Linux
	_, _ = fmt.Sscan(string(data), &granted)
	return err == nil && granted < doctor.InotifyFor(o.Clusters)
}

// noImage says whether there is no node image.
func (o Options) noImage(ctx context.Context, engineAnswers bool) (bool, error) {
	if o.NodeImage != "" || !engineAnswers {
		return o.NodeImage == "", nil // what is wrong with a requested one is said when it is used
	}
	available, err := nodeimage.Available(ctx, o.Images.Engine, "")
	return !available, err
}

func (o Options) startEngine(ctx context.Context) error {
	if err := o.engineScript(ctx, "install", "start"); err != nil {
		return err
	}
	err := engine.Ping(ctx, o.Images.Engine) // as this user, and not as root
	return cmp.Or(o.unfixable(err), err)
}

// provideImage prefers a pull: it takes less time.
func (o Options) provideImage(ctx context.Context) error {
	if _, err := o.Images.Resolve(ctx, ""); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := o.engineScript(ctx, "install-image-tools"); err != nil {
		return err
	}
	_, err := nodeimage.Build(ctx, o.Images)
	return err
}

// engineScript runs commands of scripts/engine.sh as root.
func (o Options) engineScript(ctx context.Context, commands ...string) error {
	args := append([]string{"sudo", filepath.Join(o.Root, "scripts", "engine.sh")}, commands...)
	if os.Geteuid() == 0 {
		args = args[1:]
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = o.Out, o.Out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second // for its own clean-up
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return &clusters.Problem{What: "scripts/engine.sh failed; its messages are above", Fix: strings.Join(args, " "), Err: err}
	}
	return ctx.Err()
}
