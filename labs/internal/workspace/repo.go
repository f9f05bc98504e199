package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	gitDir   = ".git"
	labDir   = "lab"     // below gitDir: what this package keeps there
	markFile = "created" // below labDir: says that this package created the workspace
	lockFile = "lock"    // below labDir

	savesPrefix = "refs/lab/saves/"
	// saveTime sorts as text as it does in time.
	saveTime = "20060102T150405.000000000Z"

	// identity stands in the commits that are made here, whoever runs them.
	identity = "Operator Lab <lab@operator-lab.invalid>"
)

// repo is the repository of a workspace. It is only read and written through
// plumbing that knows neither index nor work tree: so no hook, filter,
// attribute or line-ending setting can touch what is saved.
type repo struct{ dir string }

func (r *repo) path(elem ...string) string {
	return filepath.Join(append([]string{r.dir, gitDir}, elem...)...)
}

// init makes the repository with one commit of tree, and marks the workspace
// as created here.
func (r *repo) init(ctx context.Context, tree course.Tree, message string) error {
	if _, err := r.git(ctx, nil, "init", "--quiet", "--initial-branch=main", "--template="); err != nil {
		return err
	}
	if err := r.commit(ctx, "refs/heads/main", tree, message, time.Now()); err != nil {
		return err
	}
	if _, err := r.git(ctx, nil, "read-tree", "HEAD"); err != nil {
		return err
	}
	if err := os.MkdirAll(r.path(labDir), 0o755); err != nil {
		return fmt.Errorf("mark the workspace: %w", err)
	}
	mark := "lab created this folder and may change it, after saving what is in it.\n"
	if err := os.WriteFile(r.path(labDir, markFile), []byte(mark), 0o644); err != nil {
		return fmt.Errorf("mark the workspace: %w", err)
	}
	return nil
}

// tryLock takes the workspace for this process; a busy one is a usage error.
func (r *repo) tryLock() (*flock.Flock, error) {
	lock := flock.New(r.path(labDir, lockFile))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, cannotChange(r.dir, err)
	}
	if !ok {
		return nil, exit.Usage("another lab command is changing %s right now: try again when it is done", r.dir)
	}
	return lock, nil
}

// Save is a state of a workspace that was saved before it was replaced.
type Save struct {
	// Name is made of the time and unique in its workspace.
	Name string
	// Time is when it was saved.
	Time time.Time
	// Reason says what replaced it: "before solve 4".
	Reason string

	commit string
}

// saves returns all saves, the latest last.
func (r *repo) saves(ctx context.Context) (saves []Save, err error) {
	out, err := r.git(ctx, nil, "for-each-ref", "--sort=refname", "--format=%(refname) %(objectname) %(contents:subject)", savesPrefix)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		name := strings.TrimPrefix(fields[0], savesPrefix)
		at, err := time.Parse(saveTime, name)
		if err != nil || len(fields) < 3 {
			continue // not made here
		}
		saves = append(saves, Save{Name: name, Time: at, Reason: plain.Line(fields[2]), commit: fields[1]})
	}
	return saves, nil
}

// save returns the save of the given name; "" means the latest.
func (r *repo) save(ctx context.Context, name string) (Save, error) {
	saves, err := r.saves(ctx)
	if err != nil {
		return Save{}, err
	}
	if len(saves) == 0 {
		return Save{}, exit.Usage("there is nothing to bring back: no command has changed %s yet", r.dir)
	}
	if name == "" {
		return saves[len(saves)-1], nil
	}
	for _, s := range saves {
		if s.Name == name {
			return s, nil
		}
	}
	return Save{}, exit.Usage("there is no save %q: `make undo LIST=1` lists them", name)
}

// write saves a tree and returns the save's name. Names rise even when the
// clock does not.
func (r *repo) write(ctx context.Context, tree course.Tree, reason string) (string, error) {
	saves, err := r.saves(ctx)
	if err != nil {
		return "", err
	}
	now := time.Now().UTC()
	if n := len(saves); n > 0 && !now.After(saves[n-1].Time) {
		now = saves[n-1].Time.Add(1)
	}
	name := now.Format(saveTime)
	if err := r.commit(ctx, savesPrefix+name, tree, reason, now); err != nil {
		return "", fmt.Errorf("save your work: %w", err)
	}
	return name, nil
}

// commit writes a tree as a commit without parents and lets ref, which does
// not exist yet, point to it.
func (r *repo) commit(ctx context.Context, ref string, tree course.Tree, message string, at time.Time) error {
	var in bytes.Buffer
	fmt.Fprintf(&in, "feature done\ncommit %s\ncommitter %s %d +0000\n", ref, identity, at.Unix())
	fmt.Fprintf(&in, "data %d\n%s\n", len(message), message)
	for _, path := range tree.Paths() {
		file := tree[path]
		fmt.Fprintf(&in, "M %s inline %s\ndata %d\n", gitModes[file.Mode], quote(path), len(file.Data))
		in.Write(file.Data)
		in.WriteByte('\n')
	}
	in.WriteString("done\n")
	_, err := r.git(ctx, &in, "fast-import", "--quiet", "--done", "--date-format=raw")
	return err
}

// gitModes are the modes of files in a tree as git has them.
var gitModes = map[fs.FileMode]string{0o644: "100644", 0o755: "100755", fs.ModeSymlink: "120000"}

// quote writes a path so that any byte can be in it.
func quote(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// readTree reads the files of a commit.
func (r *repo) readTree(ctx context.Context, commit string) (course.Tree, error) {
	list, err := r.git(ctx, nil, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	tree := course.Tree{}
	var paths []string
	var wanted bytes.Buffer
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if entry == "" {
			continue
		}
		meta, path, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(meta) // mode, type, id
		if len(fields) != 3 || fields[1] != "blob" {
			return nil, fmt.Errorf("read save: %q is no file", path)
		}
		tree[path] = course.File{Mode: fileMode(fields[0])}
		paths = append(paths, path)
		wanted.WriteString(fields[2] + "\n")
	}
	blobs, err := r.git(ctx, &wanted, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	return tree, fillTree(tree, paths, blobs)
}

func fileMode(git string) fs.FileMode {
	for mode, text := range gitModes {
		if text == git {
			return mode
		}
	}
	return 0o644
}

// fillTree gives the files at paths their content from what `git cat-file
// --batch` printed for them.
func fillTree(tree course.Tree, paths []string, blobs []byte) error {
	in := bufio.NewReader(bytes.NewReader(blobs))
	for _, path := range paths {
		header, err := in.ReadString('\n') // id, type, size
		fields := strings.Fields(header)
		if err != nil || len(fields) != 3 {
			return fmt.Errorf("read save: the content of %q is missing", path)
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			return fmt.Errorf("read save: %q: %w", path, err)
		}
		file := course.File{Mode: tree[path].Mode, Data: make([]byte, size)}
		if _, err := io.ReadFull(in, file.Data); err != nil {
			return fmt.Errorf("read save: %q: %w", path, err)
		}
		_, _ = in.Discard(1)
		tree[path] = file
	}
	return nil
}

// git runs git on this repository alone: no setting of the user, the system or
// the environment reaches it, no hook runs, and the learner's own settings
// that would start programs are overruled.
func (r *repo) git(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	full := append([]string{"--git-dir=" + r.path(),
		"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "gc.auto=0"}, args...)
	cmd := exec.CommandContext(ctx, "git", full...)
	cmd.Dir = r.dir
	cmd.Env = cleanEnv(os.Environ())
	cmd.Stdin = in
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return nil, exit.Environment(errors.New("git is missing, and the workspace is a repository: install git"))
	}
	return nil, fmt.Errorf("git %s in %s: %w: %s", args[0], r.dir, err, plain.Line(complaint.String()))
}

// cleanEnv is the environment without what points git elsewhere.
func cleanEnv(env []string) []string {
	clean := []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		// A repository may say that a remote has what it lacks, and which program asks that remote.
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"}
	for _, entry := range env {
		if !strings.HasPrefix(entry, "GIT_") && !strings.HasPrefix(entry, "LC_ALL=") {
			clean = append(clean, entry)
		}
	}
	return clean
}
