package handout

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
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

// pack writes the folder in p.fresh as an archive, into a new file.
func (p place) pack() (err error) {
	f, err := p.root.OpenFile(p.freshArchive(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	folder, err := fs.Sub(p.root.FS(), p.fresh())
	if err != nil {
		return err
	}
	archive := zip.NewWriter(f)
	return errors.Join(archive.AddFS(folder), archive.SetComment(comment(p.id)), archive.Close())
}
