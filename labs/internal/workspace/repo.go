package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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

	// identity stands in the commit that is made here, whoever runs lab.
	identity = "Operator Lab <lab@operator-lab.invalid>"
)

// repo is the repository of a workspace. git runs in it only while it is made:
// later it may be a stranger's, and git would read what starts programs or
// leads elsewhere. What is kept in it then is written and read without git.
type repo struct {
	dir string
	// mostOfASave limits the bytes of a save's file, and of all files in it: more is neither written nor read.
	mostOfASave int64
}

func repoOf(dir string) *repo { return &repo{dir, 1 << 30} }

func (r *repo) path(elem ...string) string {
	return filepath.Join(append([]string{r.dir, gitDir}, elem...)...)
}

// init makes the repository with one commit of tree, and marks the workspace
// as created here.
func (r *repo) init(ctx context.Context, tree course.Tree, message string) error {
	if err := r.git(ctx, nil, "init", "--quiet", "--initial-branch=main", "--template="); err != nil {
		return err
	}
	if err := r.commit(ctx, "refs/heads/main", tree, message); err != nil {
		return err
	}
	if err := r.git(ctx, nil, "read-tree", "HEAD"); err != nil {
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

// commit writes a tree as a commit without parents and lets ref, which does
// not exist yet, point to it.
func (r *repo) commit(ctx context.Context, ref string, tree course.Tree, message string) error {
	var in bytes.Buffer
	fmt.Fprintf(&in, "feature done\ncommit %s\ncommitter %s %d +0000\n", ref, identity, time.Now().Unix())
	fmt.Fprintf(&in, "data %d\n%s\n", len(message), message)
	for _, path := range tree.Paths() {
		file := tree[path]
		fmt.Fprintf(&in, "M %s inline %q\ndata %d\n", gitModes[file.Mode], path, len(file.Data))
		in.Write(file.Data)
		in.WriteByte('\n')
	}
	in.WriteString("done\n")
	return r.git(ctx, &in, "fast-import", "--quiet", "--done", "--date-format=raw")
}

// gitModes are the modes of files in a tree as git has them.
var gitModes = map[fs.FileMode]string{0o644: "100644", 0o755: "100755", fs.ModeSymlink: "120000"}

// git runs git on this repository alone, which is being made: no setting of the user, the system or the environment
// reaches it.
func (r *repo) git(ctx context.Context, in io.Reader, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + r.path()}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = cleanEnv(os.Environ())
	cmd.Stdin = in
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return exit.Environment(errors.New("git is missing, and the workspace is a repository: install git"))
	}
	return fmt.Errorf("git %s in %s: %w: %s", args[0], r.dir, err, plain.Line(complaint.String()))
}

// cleanEnv is the environment without what points git elsewhere.
func cleanEnv(env []string) []string {
	clean := []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	for _, entry := range env {
		if !strings.HasPrefix(entry, "GIT_") && !strings.HasPrefix(entry, "LC_ALL=") {
			clean = append(clean, entry)
		}
	}
	return clean
}
