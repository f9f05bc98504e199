// Package grade judges what learners handed in, each in a throwaway container: control plane, checks and the learner's
// programs together, without network, and with nothing of this machine but the course, its tools, Go and public modules.
package grade

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// nameLimit is how many characters of a name are shown, and lineLimit of a reason.
	nameLimit, lineLimit = 60, 160
	zipExtension         = ".zip"
)

// Submission is what one learner handed in.
type Submission struct {
	// Name is that of the folder or zip, without what could do harm on a terminal.
	Name string `json:"name"`
	// Path is where it is.
	Path string `json:"path"`
}

// Find lists what is in dir: a folder or a zip for each learner, sorted by name. What is neither, or hidden, is nobody's; its
// names are returned, so that somebody can wonder about them. A folder that cannot be read, or has nobody in it, is an error.
func Find(dir string) (all []Submission, others []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("%s cannot be read: name a folder with a folder or zip for each learner (%w)", dir, errors.Unwrap(err))
	}
	for _, entry := range entries {
		base, isZip := strings.CutSuffix(entry.Name(), zipExtension)
		isZip = isZip && entry.Type().IsRegular()
		if strings.HasPrefix(base, ".") || !entry.IsDir() && !isZip {
			others = append(others, plain.Short(entry.Name(), nameLimit))
			continue
		}
		all = append(all, Submission{Name: plain.Short(base, nameLimit), Path: filepath.Join(dir, entry.Name())})
	}
	if len(all) == 0 {
		return nil, others, fmt.Errorf("%s has no folders and no zips: it should have one for each learner", dir)
	}
	slices.SortStableFunc(all, func(a, b Submission) int { return cmp.Compare(a.Name, b.Name) })
	return all, others, nil
}

// digest tells whether something else was handed in since: another name, size or time of a file.
func (s Submission) digest() (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(s.Path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			fmt.Fprintf(sum, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	return fmt.Sprintf("%x", sum.Sum(nil)), err
}
