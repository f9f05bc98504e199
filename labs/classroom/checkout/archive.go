// Package checkout packs the course for machines that have no git, or no way to where it is kept.
package checkout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Folder is what an archive unpacks to.
const Folder = "operator-lab"

// sendLimit is how long an archive may take to be sent: a megabyte, over a Wi-Fi that thirty others use.
const sendLimit = 5 * time.Minute

// Archive is a packed checkout.
type Archive struct {
	// Commit is what was packed.
	Commit string
	// Changed says that the checkout has changes that are not committed, and so not in the archive.
	Changed bool

	data []byte
}

// Pack packs the files that are tracked at HEAD of the checkout at root: nothing of anybody's workspace or results, and
// no history.
func Pack(ctx context.Context, root string) (Archive, error) {
	if prefix, err := git(ctx, root, "rev-parse", "--show-prefix"); err == nil && len(bytes.TrimSpace(prefix)) > 0 {
		return Archive{}, fmt.Errorf("pack the course: %s is a folder of another repository", root)
	}
	commit, err := git(ctx, root, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return Archive{}, fmt.Errorf("pack the course: %w", err)
	}
	a := Archive{Commit: strings.TrimSpace(string(commit))}
	if a.data, err = git(ctx, root, "archive", "--format=tar.gz", "--prefix="+Folder+"/", a.Commit); err != nil {
		return Archive{}, fmt.Errorf("pack the course: %w", err)
	}
	status, err := git(ctx, root, "status", "--porcelain", "--untracked-files=no")
	a.Changed = err == nil && len(status) > 0
	return a, nil
}

// Unpack writes the files into a folder, which it makes.
func (a Archive) Unpack(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("unpack the course: %w", err)
	}
	cmd := exec.CommandContext(ctx, "tar", "-xzf", "-", "--strip-components=1")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(a.data)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack the course: tar: %w: %s", errors.Join(ctx.Err(), err), strings.TrimSpace(string(out)))
	}
	return nil
}

// Size in bytes.
func (a Archive) Size() int64 { return int64(len(a.data)) }

// SHA256 is its digest in hexadecimal. The same commit has the same on the same machine.
func (a Archive) SHA256() string { return fmt.Sprintf("%x", sha256.Sum256(a.data)) }

// ServeHTTP sends the archive, to everybody.
func (a Archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "The course is read only.", http.StatusMethodNotAllowed)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendLimit)) // tests have none
	h := w.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("Content-Disposition", `attachment; filename="course.tar.gz"`)
	h.Set("Cache-Control", "no-cache") // the instructor may have another commit tomorrow
	h.Set("ETag", `"`+a.Commit+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
}

// git asks about the checkout at root, whatever a hook or a shell has said about another one.
func git(ctx context.Context, root string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	for _, entry := range cmd.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if name != "GIT_DIR" && name != "GIT_WORK_TREE" && name != "GIT_INDEX_FILE" {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String())))
	}
	return out, nil
}
