// Package judge is the inside of a hosted verdict (labs/hosted): the image of its Pod, and what happens in there.
package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/classroom/checkout"
	"github.com/example/operator-lab/labs/classroom/modules"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/course"
)

// Where things are in the image.
const (
	CourseDir = "/lab/course"
	BinDir    = "/lab/bin"
	// CacheDir has what [clusters.CacheDir] has elsewhere. Nobody can write there.
	CacheDir = "/lab/cache"

	goDir    = "/lab/go"
	modDir   = "/lab/mod"
	builtDir = "/lab/built"
	outDir   = "/lab/out" // only while the image is made

	shim = BinDir + "/sandbox-shim"
)

// endLimit is how long a command may take to end that was asked to.
const endLimit = 10 * time.Second

// user is that of the judge, as a number: the kubelet cannot tell whether a name is root.
const user = "65532:65532"

// Image makes the judge's image.
type Image struct {
	Course *course.Course
	// Engine is the container engine's command line, such as docker: what the image has to have compiled beforehand is
	// compiled in a container, at the paths of the image.
	Engine string
	// Cache is where the control plane's programs are ([clusters.CacheDir]).
	Cache string
	// Progress is told what takes long, in one line each.
	Progress func(line string)
}

// Write writes the image to a file as a docker-archive, which [clusters.Provider.LoadImageArchive] and `docker load` take. It
// takes some minutes, and meanwhile 5 GB of the disk that archive is on, more than twice the image's size.
func (i Image) Write(ctx context.Context, archive string) error {
	work, err := os.MkdirTemp(filepath.Dir(archive), "judge-image-")
	if err != nil {
		return fmt.Errorf("make the judge's image: %w", err)
	}
	defer os.RemoveAll(work)
	layers, err := i.layers(ctx, work)
	if err == nil {
		err = clusters.WriteImage(archive, hosted.ImageRef, v1.Config{
			Entrypoint: []string{BinDir + "/judge"}, User: user, Env: append(environment(), buildCache), WorkingDir: CourseDir,
		}, layers...)
	}
	if err != nil {
		return fmt.Errorf("make the judge's image: %w", err)
	}
	return nil
}

// layers are the image's, those first that change seldom.
func (i Image) layers(ctx context.Context, work string) (all []v1.Layer, err error) {
	in := func(name string) string { return filepath.Join(work, name) }
	goRoot, err := i.goCommand(ctx, i.Course.Root, nil, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	i.Progress("looking for the control plane")
	provider, err := embedded.New(in("state"), i.Course.Root, i.Cache, embedded.WithLogger(i.Progress))
	if err != nil {
		return nil, err
	}
	programs, err := provider.Programs(ctx)
	if err != nil {
		return nil, err
	}
	i.Progress("collecting modules")
	needs, err := modules.Needs(i.Course, work, false)
	if err != nil {
		return nil, err
	}
	if err := modules.FillCache(ctx, in("mod"), needs[0]); err != nil {
		return nil, err
	}
	// What a learner's code is compiled from; the rest is compiled here, and gone.
	mod, err := writeLayer(in("mod.tar"), tree{in("mod"), modDir, noSource})
	if err != nil {
		return nil, err
	}
	if err := modules.FillCache(ctx, in("mod"), needs[1:]...); err != nil {
		return nil, err
	}
	packed, err := checkout.Pack(ctx, i.Course.Root)
	if err != nil {
		return nil, err
	}
	if packed.Changed {
		i.Progress("changes that are not committed are left out")
	}
	if err := packed.Unpack(ctx, in("course")); err != nil {
		return nil, err
	}
	components := i.components(programs)
	i.Progress("compiling in a container what every verdict needs: about five minutes")
	if err := i.prepare(ctx, work, goRoot, components); err != nil {
		return nil, err
	}
	built, err := filepath.Glob(in("out/grade/built-*"))
	if err != nil || len(built) != 1 {
		return nil, errors.Join(fmt.Errorf("there are %d build caches, not one", len(built)), err)
	}
	i.Progress("packing")
	for n, trees := range [][]tree{
		{{from: goRoot, to: goDir, skip: needless}},
		components,
		{{from: built[0], to: builtDir}},
		{{from: in("course"), to: CourseDir}, {from: in("out/bin"), to: BinDir}, {from: in("out/embedded"), to: CacheDir + "/embedded"}},
	} {
		l, err := writeLayer(in(fmt.Sprintf("%d.tar", n)), trees...)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return slices.Insert(all, 1, v1.Layer(mod)), nil
}

// noSource is what of a module cache no build needs: zips, tests, and what they test with.
func noSource(rel string, d fs.DirEntry) bool {
	return path.Ext(rel) == ".zip" || rel == "cache/lock" || needless(rel, d)
}

// needless is what of the Go toolchain no build of a learner's code needs.
func needless(rel string, d fs.DirEntry) bool {
	top, _, _ := strings.Cut(rel, "/")
	return slices.Contains([]string{"api", "doc", "misc", "test"}, top) ||
		d.IsDir() && d.Name() == "testdata" || strings.HasSuffix(rel, "_test.go")
}

// components are the programs of the control plane, in folders of the same names as in [Image.Cache].
func (i Image) components(programs map[string]string) (all []tree) {
	for _, program := range programs {
		folder := path.Base(filepath.ToSlash(filepath.Dir(program)))
		all = append(all, tree{from: program, to: path.Join(CacheDir, "components", folder, filepath.Base(program))})
	}
	slices.SortFunc(all, func(a, b tree) int { return strings.Compare(a.to, b.to) })
	return all
}

// prepare compiles what the image has ready, in a container that has the rest of the image in its places.
func (i Image) prepare(ctx context.Context, work, goRoot string, components []tree) error {
	out, bin := filepath.Join(work, "out"), filepath.Join(work, "out", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for _, program := range []string{"judge", "sandbox-shim"} {
		args := []string{"build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(bin, program), "./labs/classroom/cmd/" + program}
		if _, err := i.goCommand(ctx, filepath.Join(work, "course"), []string{"GOOS=linux"}, args...); err != nil {
			return err
		}
	}
	empty, err := writeLayer(filepath.Join(work, "empty.tar"))
	if err != nil {
		return err
	}
	const ref = hosted.ImageRef + "-empty"
	if _, err := run(ctx, work, nil, i.Engine, "import", empty.file, ref); err != nil {
		return err
	}
	defer func() { _, _ = run(context.WithoutCancel(ctx), work, nil, i.Engine, "rmi", ref) }()
	args := []string{
		"run", "--rm", "--pull", "never", "--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "--read-only", "--tmpfs", "/tmp:exec,mode=1777",
	}
	for _, entry := range environment() {
		args = append(args, "--env", entry)
	}
	mounts := append(slices.Clone(components),
		tree{from: goRoot, to: goDir}, tree{from: filepath.Join(work, "mod"), to: modDir},
		tree{from: filepath.Join(work, "course"), to: CourseDir}, tree{from: bin, to: BinDir})
	for _, m := range mounts {
		args = append(args, "--mount", "type=bind,readonly,source="+m.from+",target="+m.to)
	}
	args = append(args, "--mount", "type=bind,source="+out+",target="+outDir, ref, BinDir+"/judge", "prepare")
	_, err = run(ctx, work, nil, i.Engine, args...)
	return err
}

// environment is that of all processes in the image.
func environment() []string {
	return []string{
		"PATH=" + goDir + "/bin:" + BinDir, "HOME=/tmp", "GOMODCACHE=" + modDir, "GOCACHE=/tmp/go-build",
		"GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off",
	}
}

// buildCache has builds begin with what [Prepare] has compiled.
const buildCache = "GOCACHEPROG=" + shim + " cache " + builtDir + " /tmp/built"

// goCommand runs a Go command in dir.
func (i Image) goCommand(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	return run(ctx, dir, append([]string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="}, env...), "go", args...)
}

// run runs a command and returns what it printed.
func run(ctx context.Context, dir string, env []string, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	// The engine's command passes it on to the container, which would go on without it.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, endLimit
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", command, args[0], errors.Join(ctx.Err(), err), strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
