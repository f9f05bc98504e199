// Package judge is the inside of a container that judges: what it needs, what happens in there, and the image of its Pod
// (labs/hosted).
package judge

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	cmd := exec.CommandContext(ctx, engine, "build", "--tag", ref, "-")
	process.Own(cmd, syscall.SIGTERM)
	said := &process.Tail{Limit: 4 << 10}
	cmd.Stdout, cmd.Stderr = said, said
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("make the judge's image: %w", err)
	}
	packed := errors.Join(k.pack(stdin), stdin.Close())
	if err := cmd.Wait(); err != nil || packed != nil {
		return fmt.Errorf("make the judge's image: %w: %s", errors.Join(ctx.Err(), err, packed), strings.TrimSpace(said.String()))
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

// pack writes the Dockerfile and all that it copies as a tar file.
func (k *Kit) pack(to io.Writer) error {
	w := tar.NewWriter(to)
	text := k.dockerfile()
	if err := w.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	for i, m := range k.Mounts {
		err := filepath.WalkDir(m.Source, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(m.Source, file)
			if err != nil {
				return err
			}
			return add(w, file, path.Join(strconv.Itoa(i), path.Base(m.Target), filepath.ToSlash(rel)), entry)
		})
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// add writes one file, folder or link. Everybody may read it, and nobody write.
func add(w *tar.Writer, from, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(from); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.Uid, header.Gid, header.Uname, header.Gname = name, 0, 0, "", ""
	header.Mode |= 0o444
	if info.IsDir() {
		header.Mode |= 0o111
	}
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w, file)
	return err
}
