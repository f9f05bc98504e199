package nodeimage

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/example/operator-lab/clusters"
)

const (
	// suite is the Debian release of the node: its systemd 252 still starts on a host with cgroup v1.
	suite = "bookworm"
	// arch is the architecture of the images: a node runs on the machine at hand.
	arch = runtime.GOARCH
)

// packages lists the Debian packages of the node.
func packages() []string { return strings.Fields(string(recipeFile("packages.txt"))) }

// rootfsPath is where the root file system made of today's package list is kept.
func rootfsPath(cacheDir string) string {
	hash := sha256.New()
	fmt.Fprintln(hash, suite, arch, packages())
	hash.Write(recipeFile("rootfs.sh"))
	return filepath.Join(cacheDir, "rootfs", fmt.Sprintf("%s-%.6x.tar", suite, hash.Sum(nil)))
}

// buildRootfs returns the path of the root file system as a tar file, and makes it first when it is not there.
func buildRootfs(ctx context.Context, cacheDir string, log func(string)) (string, error) {
	out := rootfsPath(cacheDir)
	unlock, err := lock(ctx, out)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if _, err := exec.LookPath("debootstrap"); err != nil && !fileExists("/usr/sbin/debootstrap") {
		return "", &clusters.Problem{What: "debootstrap is not installed", Fix: "make setup"}
	}
	log(fmt.Sprintf("installing %d packages of Debian %s with debootstrap, about one minute", len(packages()), suite))
	err = replaceFile(out, func(tmp string) error {
		script := strings.NewReader(string(recipeFile("rootfs.sh")))
		command := asRoot("bash", "-s", "--", suite, strings.Join(packages(), ","), tmp)
		_, err := run(ctx, script, command[0], command[1:]...)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("install Debian packages: %w", err)
	}
	prune(filepath.Dir(out), out)
	return out, nil
}

// unusedTime is how long a root file system of another recipe is kept for a checkout that may still want it.
const unusedTime = 7 * 24 * time.Hour

// prune removes old root file systems from dir, except keep. One that cannot be removed does no harm.
func prune(dir, keep string) {
	names, _ := filepath.Glob(filepath.Join(dir, "*.tar"))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && name != keep && time.Since(info.ModTime()) > unusedTime {
			_ = os.Remove(name)
			_ = os.Remove(name + ".lock")
		}
	}
}

// asRoot puts sudo before a command when this process is not root.
func asRoot(command ...string) []string {
	if os.Geteuid() == 0 {
		return command
	}
	return append([]string{"sudo"}, command...)
}

// lock keeps other processes from making the same file; they wait for it.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, fmt.Errorf("create cache: %w", err)
	}
	l := flock.New(name + ".lock")
	if _, err := l.TryLockContext(ctx, lockPoll); err != nil {
		return nil, fmt.Errorf("wait for another process that makes %s: %w", name, err)
	}
	return func() { _ = l.Close() }, nil
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// rootfs is a root file system in a tar file, of which parts can be taken out.
type rootfs struct {
	file  *os.File
	files map[string]rootfsFile
}

type rootfsFile struct {
	header *tar.Header
	offset int64
}

// openRootfs reads the table of contents. Close it after use.
func openRootfs(name string) (*rootfs, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r := &rootfs{file: file, files: map[string]rootfsFile{}}
	if err := r.index(); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return r, nil
}

// Close closes the tar file.
func (r *rootfs) Close() error { return r.file.Close() }

func (r *rootfs) index() error {
	reader := tar.NewReader(r.file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// The reader reads whole blocks and nothing ahead, so here the contents begin.
		offset, err := r.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		r.files[path.Clean(header.Name)] = rootfsFile{header, offset}
	}
}

// resolve follows symbolic links, those of parent folders included, to a file or folder.
func (r *rootfs) resolve(name string) (rootfsFile, error) {
	const maxLinks = 40
	done, rest := "", strings.Split(strings.Trim(name, "/"), "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		file, ok := r.files[next]
		if !ok || links > maxLinks {
			return rootfsFile{}, fmt.Errorf("find /%s in the root file system: %w", name, fs.ErrNotExist)
		}
		if file.header.Typeflag != tar.TypeSymlink {
			done = next
			continue
		}
		links++
		target := path.Join("/", done, file.header.Linkname)
		if path.IsAbs(file.header.Linkname) {
			target = path.Clean(file.header.Linkname)
		}
		done, rest = "", append(strings.Split(strings.Trim(target, "/"), "/"), rest...)
	}
	return r.files[done], nil
}

// entry is the file called name, with links followed.
func (r *rootfs) entry(name string) (entry, error) {
	file, err := r.resolve(name)
	if err != nil {
		return entry{}, err
	}
	return entry{name: name, mode: file.header.Mode & 0o777, size: file.header.Size,
		open: func() (io.ReadCloser, error) { return io.NopCloser(r.section(file)), nil }}, nil
}

func (r *rootfs) section(file rootfsFile) *io.SectionReader {
	return io.NewSectionReader(r.file, file.offset, file.header.Size)
}

// glob lists the files whose name matches the pattern.
func (r *rootfs) glob(pattern string) []string {
	var names []string
	for name := range r.files {
		if ok, _ := path.Match(pattern, name); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// programs gives the named files together with the shared libraries and the loader that they need.
func (r *rootfs) programs(names ...string) ([]entry, error) {
	var entries []entry
	seen := map[string]bool{}
	for queue := names; len(queue) > 0; queue = queue[1:] {
		if seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		file, err := r.entry(queue[0])
		if err != nil {
			return nil, err
		}
		needs, err := r.needs(queue[0])
		if err != nil {
			return nil, err
		}
		entries = append(entries, file)
		queue = append(queue, needs...)
	}
	return entries, nil
}

// packageVersion is the upstream version of an installed package, such as 1.6.18 of 1.6.18-1+deb12u1.
func (r *rootfs) packageVersion(pkg string) (string, error) {
	file, err := r.resolve("var/lib/dpkg/status")
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(r.section(file))
	if err != nil {
		return "", fmt.Errorf("read list of packages: %w", err)
	}
	for paragraph := range strings.SplitSeq(string(data), "\n\n") {
		if !strings.HasPrefix(strings.TrimSpace(paragraph), "Package: "+pkg+"\n") {
			continue
		}
		for line := range strings.Lines(paragraph) {
			if version, ok := strings.CutPrefix(line, "Version: "); ok {
				upstream, _, _ := strings.Cut(strings.TrimSpace(version), "-")
				return upstream, nil
			}
		}
	}
	return "", fmt.Errorf("find package %s in the root file system: %w", pkg, fs.ErrNotExist)
}

// needs lists the loader and the libraries that a program or library names.
func (r *rootfs) needs(name string) ([]string, error) {
	file, err := r.resolve(name)
	if err != nil {
		return nil, err
	}
	program, err := elf.NewFile(r.section(file))
	if err != nil {
		return nil, fmt.Errorf("read /%s: %w", name, err)
	}
	libraries, err := program.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("read /%s: %w", name, err)
	}
	var found []string
	for _, library := range libraries {
		where, err := r.library(library)
		if err != nil {
			return nil, fmt.Errorf("find what /%s needs: %w", name, err)
		}
		found = append(found, where)
	}
	return append(found, interpreter(program)...), nil
}

// library finds a shared library where Debian's loader looks for it.
func (r *rootfs) library(name string) (string, error) {
	for _, pattern := range []string{"usr/lib/*-linux-gnu/", "lib/*-linux-gnu/", "usr/lib/*-linux-gnu/systemd/"} {
		if found := r.glob(pattern + name); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("find library %s: %w", name, fs.ErrNotExist)
}

// interpreter is the loader that a program asks for; libraries ask for none.
func interpreter(program *elf.File) []string {
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		data, err := io.ReadAll(segment.Open())
		if err == nil {
			return []string{strings.Trim(string(data), "/\x00")}
		}
	}
	return nil
}
