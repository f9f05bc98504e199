// Package setup brings up what a machine lacks for lab clusters: a container engine, kernel settings, a node image.
//
// Each of these needs root or minutes, so nothing is done before somebody agreed to it.
package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
)

// Options say what to set up and whom to ask.
type Options struct {
	// Root is the checkout: scripts and component modules come from there.
	Root string
	// CacheDir keeps what building a node image can use again.
	CacheDir string
	// Engine is the container engine's command line; "" means docker.
	Engine string
	// NodeImage is the requested node image; "" means any. A requested one is never built.
	NodeImage string
	// Thorough sets up also what a single cluster can do without: kernel settings for many clusters side by side, and a
	// node image of today's recipe in place of an older one. By default only what would stop a lab is missing.
	Thorough bool
	// Clusters is how many clusters the caller will have at the same time, besides those that run already. Where the
	// kernel grants too few inotify instances for all of them, it is told to grant more. 0 means 1.
	Clusters int
	// Yes is consent that was given in advance.
	Yes bool
	// Meanwhile is a line for those who wait, before a step that takes many minutes. "" is none.
	Meanwhile string
	// In is asked for consent if it is a terminal. May be nil.
	In io.Reader
	// Out is told what happens, line by line. nil means nobody.
	Out io.Writer

	instancesFile string // in place of the kernel's own, in tests
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.Engine == "" {
		o.Engine = "docker"
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.instancesFile == "" {
		o.instancesFile = instancesFile
	}
	return o
}

// fixConsent is what to run to give consent in advance.
const fixConsent = "make setup YES=1"

const (
	// instances is what the kernel is told to grant where its default of 128 is too little.
	instances = 8192
	// instancesFile is where the kernel says what it grants.
	instancesFile = "/proc/sys/fs/inotify/max_user_instances"
	// endDelay is what a cancelled script has for its own clean-up.
	endDelay = 20 * time.Second
)

// Run does what is missing, and nothing when nothing is. It asks once, for all of it. Whatever cannot be fixed, and
// missing consent, is a [*clusters.Problem].
func Run(ctx context.Context, o Options) error {
	o = o.withDefaults()
	steps, err := plan(ctx, o)
	if err != nil || len(steps) == 0 {
		return err
	}
	if err := consent(o, steps); err != nil {
		return err
	}
	for _, s := range steps {
		if s.long && o.Meanwhile != "" {
			fmt.Fprintln(o.Out, o.Meanwhile)
		}
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("set up %s: %w", s.name, err)
		}
	}
	return nil
}

// step is one thing to set up.
type step struct {
	name string
	what string // what will be done, and what it costs
	do   func(context.Context) error
	long bool // takes many minutes
}

// plan finds out what is missing.
func plan(ctx context.Context, o Options) ([]step, error) {
	var steps []step
	engineErr := clusters.PingEngine(ctx, o.Engine)
	if engineErr != nil {
		if err := canStartEngine(o, engineErr); err != nil {
			return nil, err
		}
		steps = append(steps, step{name: "container engine", do: o.startEngine,
			what: "installs docker.io, iptables, iproute2 and jq from this machine's package sources, removes the network bridges of an engine that " +
				"has ended, and starts dockerd (root, 1 minute)"})
	}
	few, err := o.fewInstances(ctx, engineErr == nil)
	if err != nil {
		return nil, err
	}
	if few {
		steps = append(steps, step{name: "kernel settings", do: o.raiseSettings,
			what: fmt.Sprintf("raises fs.inotify.max_user_instances to %d, and max_user_watches, until the next boot (root)", instances)})
	}
	missing, err := imageMissing(ctx, o, engineErr == nil)
	if err != nil {
		return nil, err
	}
	if missing {
		steps = append(steps, step{name: "node image", do: o.provideImage, long: true,
			what: "pulls kind's image if a registry is in reach, else installs debootstrap and debian-archive-keyring and builds one from source (root, 10 minutes on two cores)"})
	}
	return steps, nil
}

// canStartEngine returns why scripts/engine.sh cannot help with an engine that does not answer.
func canStartEngine(o Options, pingErr error) error {
	switch {
	case strings.Contains(pingErr.Error(), "permission denied"):
		return &clusters.Problem{What: "you may not use the container engine",
			Fix: "sudo usermod -aG docker $USER, then log in again", Err: pingErr}
	case o.Engine != "docker":
		return &clusters.Problem{What: o.Engine + " does not answer, and only docker can be set up here", Err: pingErr}
	case os.Getenv("DOCKER_HOST") != "":
		return &clusters.Problem{What: "no engine answers at DOCKER_HOST=" + os.Getenv("DOCKER_HOST"),
			Fix: "unset DOCKER_HOST, or start that engine", Err: pingErr}
	case runtime.GOOS != "linux":
		return &clusters.Problem{What: "no container engine answers", Fix: "start Docker Desktop", Err: pingErr}
	}
	return nil
}

// fewInstances says whether the kernel grants fewer inotify instances than the clusters need, those that run included. The
// engine is only asked for these where it matters.
func (o Options) fewInstances(ctx context.Context, engineAnswers bool) (bool, error) {
	data, err := os.ReadFile(o.instancesFile)
	if err != nil {
		return false, nil //nolint:nilerr // no Linux; the engine's own machine decides
	}
	granted, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || granted >= instances {
		return false, nil //nolint:nilerr // nothing that the script would raise
	}
	if o.Thorough {
		return true, nil
	}
	running := 0
	if engineAnswers {
		if running, err = clusters.CountNodes(ctx, o.Engine); err != nil {
			return false, err
		}
	}
	return granted < doctor.InotifyFor(running+max(o.Clusters, 1)), nil
}

// imageMissing says whether there is no node image, or, to be thorough, only one of an older recipe.
func imageMissing(ctx context.Context, o Options, engineAnswers bool) (bool, error) {
	if o.NodeImage != "" {
		return false, nil // whether it is any good is said when it is used
	}
	if !engineAnswers {
		return true, nil
	}
	available, err := nodeimage.Available(ctx, o.Engine, "")
	if err != nil || !available || !o.Thorough {
		return !available, err
	}
	image, err := nodeimage.Resolve(ctx, o.Engine, "")
	return image.Stale, err
}

// consent asks for it, unless it was given.
func consent(o Options, steps []step) error {
	fmt.Fprintln(o.Out, "This machine lacks something that lab clusters need. To be done:")
	for _, s := range steps {
		fmt.Fprintf(o.Out, "  %s: %s\n", s.name, s.what)
	}
	if o.Yes {
		return nil
	}
	file, ok := o.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &clusters.Problem{What: "not set up, because nobody agreed to it", Fix: fixConsent}
	}
	fmt.Fprint(o.Out, "Do it? [y/N] ")
	return answer(file)
}

// answer reads a yes.
func answer(in io.Reader) error {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read consent: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return &clusters.Problem{What: "not set up, because the answer was not yes", Fix: fixConsent}
}

func (o Options) startEngine(ctx context.Context) error {
	for _, command := range []string{"install", "start"} {
		if err := o.engineScript(ctx, command); err != nil {
			return err
		}
	}
	if err := clusters.PingEngine(ctx, o.Engine); err != nil {
		if unusable := canStartEngine(o, err); unusable != nil {
			return unusable
		}
		return err
	}
	return nil
}

func (o Options) raiseSettings(ctx context.Context) error { return o.engineScript(ctx, "sysctl") }

// provideImage prefers a pull: it takes less time, and is what everybody else uses.
func (o Options) provideImage(ctx context.Context) error {
	log := func(line string) { fmt.Fprintln(o.Out, line) }
	image, err := nodeimage.Resolver{Engine: o.Engine, Log: log}.Resolve(ctx, "")
	if _, none := errors.AsType[*clusters.Problem](err); err != nil && !none {
		return err
	}
	if err == nil && !image.Stale {
		return nil
	}
	if err := o.engineScript(ctx, "install-image-tools"); err != nil {
		return err
	}
	_, err = nodeimage.Build(ctx, nodeimage.Options{
		Engine: o.Engine, CacheDir: o.CacheDir, Root: o.Root, WithOperand: true,
		Log: log,
	})
	return err
}

// engineScript runs a command of scripts/engine.sh as root.
func (o Options) engineScript(ctx context.Context, command string) error {
	script := filepath.Join(o.Root, "scripts", "engine.sh")
	args := []string{script, command}
	if os.Geteuid() != 0 {
		args = append([]string{"sudo"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = o.Out, o.Out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endDelay
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &clusters.Problem{What: "scripts/engine.sh " + command + " failed; its messages are above",
			Fix: "sudo scripts/engine.sh " + command, Err: err}
	}
	return nil
}
