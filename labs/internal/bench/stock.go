package bench

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// managerImage is the image of the learner's manager on the way by hand. It goes with each measurement.
const managerImage = "operator-lab.local/bench-manager:stock"

// stockVerdict goes the way of somebody without the lab, one step after the other:
//
//	kind create cluster --wait 5m
//	go build, docker import, kind load docker-image
//	go test ./labs
//	kind delete cluster
func (w *Workbench) stockVerdict(ctx context.Context, _ int) (samples []Sample, err error) {
	dir, err := os.MkdirTemp("", "operator-lab-stock-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // the manager runs as somebody else
		return nil, fmt.Errorf("open folder: %w", err)
	}
	clock, way := startWatch(), &steps{}
	var c *clusters.Cluster
	err = way.do("kind create", func() (err error) {
		c, err = w.Stock.Create(ctx, "stock", w.StockSpec(), false)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = w.judgeByHand(ctx, way, c, filepath.Join(dir, "manager"))
	cpu, cpuErr := w.nodesCPU(ctx, c)
	deleteErr := way.do("kind delete", func() (err error) {
		remove(ctx, w.Stock, c.Name, &err)
		return err
	})
	if err := errors.Join(err, deleteErr); err != nil {
		return nil, err
	}
	s := Sample{Series: GreenStock, Seconds: way.seconds(), Parts: way.parts}
	clock.read(&s, cpu, cpuErr)
	return []Sample{s}, nil
}

// judgeByHand is everything between the cluster's creation and its deletion. manager is where to build the program.
func (w *Workbench) judgeByHand(ctx context.Context, way *steps, c *clusters.Cluster, manager string) error {
	judge := &verdict.Judge{
		Course: w.Course, State: w.State, Cache: w.Cache, Workspace: w.Solution, Clusters: w.Stock, Cluster: c,
		NodeImage: w.NodeImage, Tools: w.Tools, Seed: w.Seed, Progress: func(string) {},
	}
	err := way.do("go build", func() error { return buildManager(ctx, w.Solution, manager) })
	if err == nil {
		err = way.do("kind load", func() error { return w.loadManager(ctx, c.Name, manager) })
	}
	if err == nil {
		err = way.do("go test", func() error { return judge.GoTest(ctx, Lab, manager) })
	}
	return err
}

func buildManager(ctx context.Context, workspace, out string) error {
	build, err := verdict.BuildManager(ctx, workspace, out)
	if err == nil && build != nil {
		err = fmt.Errorf("build the solution: %s", build.Output)
	}
	return err
}

// loadManager makes an image of the program and brings it into the nodes as `kind load docker-image` does: saved to a
// file beside the program, imported by each node. So is the operand, where the node image lacks it.
func (w *Workbench) loadManager(ctx context.Context, cluster, manager string) (err error) {
	program, err := os.ReadFile(manager)
	if err != nil {
		return fmt.Errorf("make image of the manager: %w", err)
	}
	layer, err := layerOf("manager", program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.RemoveImage(context.WithoutCancel(ctx))) }()
	args := []string{"import", "--change", `ENTRYPOINT ["/manager"]`, "--change", "USER 65532:65532", "-", managerImage}
	if err := w.engine(ctx, layer, args...); err != nil {
		return err
	}
	archive := manager + ".tar"
	if err := w.engine(ctx, nil, "save", "--output", archive, managerImage); err != nil {
		return err
	}
	if err := w.Stock.Provider().LoadImageArchive(ctx, cluster, archive); err != nil {
		return err
	}
	return nodeimage.EnsureOperand(ctx, w.Stock.Provider(), cluster, w.NodeImage, w.Cache)
}

// RemoveImage removes the image of the manager, also one that a killed run has left.
func (w *Workbench) RemoveImage(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, w.Engine, "image", "ls", "--quiet", managerImage).Output()
	if err != nil {
		return fmt.Errorf("look for image %s: %w", managerImage, err)
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil
	}
	return w.engine(ctx, nil, "image", "rm", "--force", managerImage)
}

// layerOf is a file system with one program, as a tar archive.
func layerOf(name string, program []byte) (io.Reader, error) {
	var layer bytes.Buffer
	t := tar.NewWriter(&layer)
	err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = t.Write(program)
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return nil, fmt.Errorf("make image of the manager: %w", err)
	}
	return &layer, nil
}

// engine runs the command of the container engine.
func (w *Workbench) engine(ctx context.Context, stdin io.Reader, args ...string) error {
	cmd := exec.CommandContext(ctx, w.Engine, args...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s %s: %w: %s", w.Engine, args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// compileSuite has `go test` compile and vet the suite, and run nothing of it.
func compileSuite(ctx context.Context, root string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "./labs")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("compile the suite: %w\n%s", err, out))
	}
	return nil
}
