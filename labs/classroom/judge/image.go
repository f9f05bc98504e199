package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/example/operator-lab/labs/internal/process"
)

// Build makes an image of the kit with a container engine, such as docker, under a name. It takes some minutes, and twice the
// image's 3 GB of disk.
func (k *Kit) Build(ctx context.Context, engine, ref string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := os.MkdirTemp("", "lab-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(k.dockerfile()), 0o644); err != nil {
		return err
	}
	packer, builder := &process.Tail{Limit: 4 << 10}, &process.Tail{Limit: 4 << 10}
	pack, build := exec.CommandContext(ctx, "tar", k.packing(dir)...), exec.CommandContext(ctx, engine, "build", "--tag", ref, "-")
	process.Own(build, syscall.SIGTERM)
	pack.Stderr, build.Stdout, build.Stderr = packer, builder, builder
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	pack.Stdout, build.Stdin = write, read
	err = errors.Join(pack.Start(), build.Start(), read.Close(), write.Close()) // each has its end now, and notices that the other is gone
	if err == nil {
		err = errors.Join(pack.Wait(), build.Wait())
	}
	if err != nil {
		return fmt.Errorf("make the judge's image: %w: %s", errors.Join(ctx.Err(), err), strings.TrimSpace(packer.String()+builder.String()))
	}
	return nil
}

// dockerfile has a layer for each mount, those first that change seldom. What is in them lies in folders 0, 1, ... beside it.
func (k *Kit) dockerfile() string {
	text := "FROM scratch\n"
	for i, m := range k.Mounts {
		text += fmt.Sprintf("COPY [\"%d/\", %s]\n", i, strconv.Quote(path.Dir(m.Target)+"/"))
	}
	for _, entry := range k.Env {
		name, value, _ := strings.Cut(entry, "=")
		text += "ENV " + name + "=" + strconv.Quote(value) + "\n"
	}
	return text + "WORKDIR /tmp\nENTRYPOINT [" + strconv.Quote(Program) + "]\n"
}

// packing are the arguments of GNU tar that pack the Dockerfile in dir and all that it copies. Everybody may read it.
func (k *Kit) packing(dir string) []string {
	args := []string{"--create", "--absolute-names", "--owner=0", "--group=0", "--mode=a+rX"}
	var sources []string
	escaped := strings.NewReplacer(`\`, `\\`, `.`, `\.`, `*`, `\*`, `[`, `\[`, `|`, `\|`)
	for i, m := range k.Mounts {
		args = append(args, fmt.Sprintf(`--transform=flags=r;s|^%s\(/.*\)*$|%d/%s\1|`, escaped.Replace(m.Source), i, path.Base(m.Target)))
		sources = append(sources, m.Source)
	}
	return append(append(args, sources...), "--directory="+dir, "Dockerfile")
}
