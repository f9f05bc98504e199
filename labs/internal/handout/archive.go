package handout

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"slices"
	"time"
)

// markFile says inside of a handout that it is one, and whose.
const markFile = ".lab/handout.json"

// mark is the content of markFile.
type mark struct {
	Schema  int    `json:"schema"`
	Learner string `json:"learner"`
}

const markSchema = 1

// marked says whether the folder is a handout of this learner.
func (p place) marked() bool {
	data, err := p.root.ReadFile(path.Join(p.id, markFile))
	var m mark
	return err == nil && json.Unmarshal(data, &m) == nil && m == mark{Schema: markSchema, Learner: p.id}
}

// comment is what the archive has in the place of a mark: it can be read without unpacking.
func comment(id string) string { return "Operator Lab: handout of " + id }

// commented says whether the archive is a handout of this learner.
func (p place) commented() bool {
	if info, err := p.root.Lstat(p.archive()); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := p.root.Open(p.archive())
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false
	}
	r, err := zip.NewReader(f, info.Size())
	return err == nil && r.Comment == comment(p.id)
}

// firstTime is the first one that an archive can have.
var firstTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// pack writes the files as an archive into a new file of root. In it all of them are in one folder. Its bytes
// depend on the files and on made, and on nothing else.
func (c content) pack(ctx context.Context, root *os.Root, name, folder string, made time.Time) (err error) {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	archive := zip.NewWriter(out)
	if err := c.packInto(ctx, archive, folder, made); err != nil {
		return err
	}
	return errors.Join(archive.SetComment(comment(folder)), archive.Close(), out.Flush())
}

func (c content) packInto(ctx context.Context, archive *zip.Writer, folder string, made time.Time) error {
	if made.Before(firstTime) {
		made = firstTime
	}
	made = made.UTC().Truncate(time.Second)
	for _, dir := range c.folders() {
		h := &zip.FileHeader{Name: path.Join(folder, dir) + "/", Modified: made}
		h.SetMode(folderMode)
		if _, err := archive.CreateHeader(h); err != nil {
			return err
		}
	}
	for _, p := range c.paths() {
		if err := ctx.Err(); err != nil {
			return err
		}
		h := &zip.FileHeader{Name: path.Join(folder, p), Method: zip.Deflate, Modified: made}
		h.SetMode(c[p].mode())
		w, err := archive.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(c[p].data); err != nil {
			return err
		}
	}
	return nil
}

// folders are those of the files, outer ones before inner ones, beginning with "." for the whole.
func (c content) folders() []string {
	found := map[string]bool{".": true}
	for p := range c {
		for dir := path.Dir(p); !found[dir]; dir = path.Dir(dir) {
			found[dir] = true
		}
	}
	all := make([]string, 0, len(found))
	for dir := range found {
		all = append(all, dir)
	}
	slices.Sort(all)
	return all
}
