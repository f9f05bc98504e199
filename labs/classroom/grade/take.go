package grade

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
)

// What one learner may hand in. A workspace has a hundred files and some hundred kilobytes; with vendored modules it
// has 4000, and 70 MB.
const (
	bytesLimit = 100 << 20
	filesLimit = 20_000
	// depthLimit is how many folders may lie in each other: who opens a file walks through all of them.
	depthLimit = 64
	// sourceLimit is for one file that is read outside of a container. The largest that a right answer has takes 30 KB.
	sourceLimit = 1 << 20
	// historyFactor is how much more a repository may have, with all that was ever in it.
	historyFactor = 5
)

// copyLimit bounds the copy of a folder: thousands of links can each lead through thousands of folders.
const copyLimit = time.Minute

const (
	// gitLimit bounds one git command.
	gitLimit = time.Minute
	// gitBlock is what git may ask for at once, in its own form: a few kilobytes of a repository can claim to be gigabytes.
	gitBlock = "256m"
	// gitMemory is what git may have in all, in KiB, where the system knows such a limit: folders in folders add up.
	gitMemory = 1 << 20
)

// take copies what was handed in to a new folder, which containers can read: plain files and folders, without programs in
// bin and without hidden folders, which are no part of a Go module. Of a bare repository it is what HEAD has. Nothing
// of it is run, git's hooks, filters and settings included. The error is a [*Refused] where it is the learner's.
func take(ctx context.Context, s Submission, to string) (module string, err error) {
	form, from, err := formOf(s.Path)
	if err != nil {
		return "", err
	}
	c := &taken{to: to, bytesLeft: bytesLimit, filesLeft: filesLimit}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", fmt.Errorf("make a folder for a copy: %w", err)
	}
	if form == repository {
		err = c.repository(ctx, from)
	} else {
		err = c.folder(ctx, from, skipped)
	}
	if err != nil {
		return "", err
	}
	// A whole checkout, or a handout, has the module in its workspace.
	inner := filepath.Join(to, "workspace")
	if !isFile(filepath.Join(to, "go.mod")) && isFile(filepath.Join(inner, "go.mod")) {
		return inner, nil
	}
	return to, nil
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// taken is a copy that grows.
type taken struct {
	to        string
	bytesLeft int64
	filesLeft int
}

// skipped says which folders of a module are left out.
func skipped(rel string, dir bool) bool {
	return dir && (strings.HasPrefix(path.Base(rel), ".") || rel == "bin" || rel == "workspace/bin")
}

// folder copies a folder without leaving it, but for what is to be skipped.
func (c *taken) folder(ctx context.Context, from string, skip func(rel string, dir bool) bool) error {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	root, err := os.OpenRoot(from)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(rel string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return refuse("to copy it takes more than %s", copyLimit)
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return refuse("%s cannot be read", quoted(rel))
		case rel == ".":
			return nil
		case skip(rel, entry.IsDir()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return c.mkdir(rel)
		case entry.Type()&fs.ModeSymlink != 0:
			return c.linked(root, rel)
		case !entry.Type().IsRegular():
			return refuse("%s is neither file nor folder", quoted(rel))
		}
		return c.opened(root, rel)
	})
}

// linked copies the file that a symbolic link leads to. A link to a folder, or to nowhere, has nothing to copy.
func (c *taken) linked(root *os.Root, rel string) error {
	info, err := root.Stat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.count(rel)
	case err != nil:
		return refuse("%s is a symbolic link that leads out of the folder", quoted(rel))
	case !info.Mode().IsRegular():
		return c.count(rel)
	}
	return c.opened(root, rel)
}

func (c *taken) opened(root *os.Root, rel string) error {
	file, err := root.Open(rel)
	if err != nil {
		return refuse("%s cannot be read", quoted(rel))
	}
	defer file.Close()
	return c.file(rel, file)
}

func (c *taken) mkdir(rel string) error {
	if err := c.count(rel); err != nil {
		return err
	}
	return copied(rel, os.MkdirAll(filepath.Join(c.to, filepath.FromSlash(rel)), 0o755))
}

// copied blames a name that no file can have on whoever handed it in: git keeps names that are too long for a disk, and
// the same name twice.
func copied(rel string, err error) error {
	for _, theirs := range []error{fs.ErrExist, syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.EISDIR} {
		if errors.Is(err, theirs) {
			return refuse("%s cannot be the name of a file here", quoted(rel))
		}
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", quoted(rel), err)
	}
	return nil
}

// count is asked before anything is made of an entry.
func (c *taken) count(rel string) error {
	if strings.Count(rel, "/") > depthLimit {
		return refuse("%s lies in more than %d folders", quoted(rel), depthLimit)
	}
	if c.filesLeft--; c.filesLeft < 0 {
		return refuse("there are too many files; leave out what is built or downloaded")
	}
	return nil
}

// file copies what is left of the limit, and a byte more.
func (c *taken) file(rel string, content io.Reader) error {
	if err := c.count(rel); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(c.to, filepath.FromSlash(rel)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return copied(rel, err)
	}
	limit := c.bytesLeft
	source := isSource(rel)
	if source {
		limit = min(limit, sourceLimit)
	}
	n, err := io.Copy(out, io.LimitReader(content, limit+1))
	c.bytesLeft -= n
	if err := errors.Join(err, out.Close()); err != nil {
		return copied(rel, err)
	}
	if source && n > sourceLimit {
		return refuse("%s has more than %d MiB, and no file of an operator needs so much", quoted(rel), sourceLimit>>20)
	}
	if c.bytesLeft < 0 {
		return refuse("it has more than %d MiB; leave out what is built or downloaded", bytesLimit>>20)
	}
	return nil
}

// isSource says whether a file may be read here, and not only in a container: Go, YAML and what is in go.mod, but for
// modules of others.
func isSource(rel string) bool {
	vendored := strings.HasPrefix(rel, "vendor/") || strings.HasPrefix(rel, "workspace/vendor/")
	return !vendored && slices.Contains([]string{".go", ".mod", ".sum", ".yaml", ".yml", ".json"}, path.Ext(rel))
}

// quoted is the path of a file as it may be printed.
func quoted(rel string) string { return fmt.Sprintf("%.*q", pathLimit, rel) }

// repository copies the files of HEAD. What git needs for that is copied first, and nothing else: whatever the learner
// has set, hooked, or borrowed from other repositories is not there when git looks.
func (c *taken) repository(ctx context.Context, dir string) (err error) {
	private, err := os.MkdirTemp("", "lab-grade-git-")
	if err != nil {
		return fmt.Errorf("make a folder for a repository: %w", err)
	}
	defer os.RemoveAll(private)
	objects := &taken{to: private, bytesLeft: historyFactor * bytesLimit, filesLeft: historyFactor * filesLimit}
	if err := objects.folder(ctx, dir, func(rel string, _ bool) bool {
		top, _, _ := strings.Cut(rel, "/")
		// objects/info names other repositories, whose objects one could have by knowing their names.
		return !slices.Contains([]string{"HEAD", "packed-refs", "refs", "objects"}, top) || rel == "objects/info"
	}); err != nil {
		return err
	}
	const config = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
	if err := os.WriteFile(filepath.Join(private, "config"), []byte(config), 0o600); err != nil {
		return fmt.Errorf("copy repository: %w", err)
	}
	// Else a file may ask what the commit's signature is worth ($Format:%G?$): git runs gpg or gpgsm for that, which asks any
	// address that a certificate names. Or it may be in an encoding of its own, which the C library would convert, in this
	// process. Or a commit may hide files from an archive, which others who clone it have. These attributes come before those of
	// the commit.
	const attributes = "* -export-ignore -export-subst -working-tree-encoding -text -ident\n"
	info := filepath.Join(private, "info")
	if err := errors.Join(os.Mkdir(info, 0o700), os.WriteFile(filepath.Join(info, "attributes"), []byte(attributes), 0o600)); err != nil {
		return fmt.Errorf("copy repository: %w", err)
	}
	return c.checkOut(ctx, private)
}

// checkOut unpacks what git archives.
func (c *taken) checkOut(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	git, err := exec.LookPath("git")
	if err != nil {
		return exit.Environment(errors.New("git is missing, and a repository was handed in: install git"))
	}
	// Packs are mapped in small windows, because what is mapped counts as memory.
	cmd := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf(`ulimit -v %d 2>/dev/null; exec "$0" "$@"`, gitMemory), git,
		"--git-dir="+dir, "-c", "core.hooksPath="+os.DevNull, "-c", "core.attributesFile="+os.DevNull,
		"-c", "core.packedGitWindowSize=16m", "-c", "core.packedGitLimit=128m", "-c", "core.bigFileThreshold=1m", "-c", "gc.auto=0",
		"archive", "--format=tar", "HEAD")
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + dir, // it needs no other program
		"HOME=" + dir, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOC_LIMIT=" + gitBlock, "LC_ALL=C",
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	cmd.WaitDelay = time.Second
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("run git: %w", err)
	}
	unpacked := c.unpack(stdout)
	if unpacked != nil {
		cancel() // git need not go on
	}
	ended := cmd.Wait()
	var refused *Refused
	switch {
	case errors.As(unpacked, &refused):
		return unpacked
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return refuse("git needs more than %s for this repository", gitLimit)
	case ended != nil:
		return refuse("git cannot read HEAD of this repository (hand in the folder with its files instead): %s", plain.Short(complaint.String(), lineLimit))
	}
	return unpacked
}

// unpack copies an archive of git's. Links are left out: git keeps what they say, and not what they lead to.
func (c *taken) unpack(archive io.Reader) error {
	t := tar.NewReader(archive)
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, tar.ErrHeader) {
			return refuse("it has a name or a link that no archive can hold")
		}
		if err != nil {
			return fmt.Errorf("read repository: %w", err)
		}
		rel := path.Clean(header.Name)
		switch {
		case header.Typeflag == tar.TypeXGlobalHeader || rel == ".":
			continue
		case !filepath.IsLocal(rel):
			return refuse("%s leads out of the folder", quoted(rel))
		case hidden(rel):
			continue
		case header.Typeflag == tar.TypeDir:
			err = c.mkdir(rel)
		case header.Typeflag == tar.TypeSymlink && (path.IsAbs(header.Linkname) || !filepath.IsLocal(path.Join(path.Dir(rel), header.Linkname))):
			err = refuse("%s is a symbolic link that leads out of the folder", quoted(rel))
		case header.Typeflag == tar.TypeReg:
			if err = copied(rel, os.MkdirAll(filepath.Join(c.to, filepath.Dir(rel)), 0o755)); err == nil {
				err = c.file(rel, t)
			}
		}
		if err != nil {
			return err
		}
	}
}

// hidden says whether a path lies in a folder that is left out.
func hidden(rel string) bool {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if skipped(dir, true) {
			return true
		}
	}
	return false
}
