package judge

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// refusal is why nothing can be judged, which is the learner's to fix.
type refusal struct{ error }

// open finds the learner's module: in the folder itself, in its folder workspace (a whole checkout), or in the one folder that
// is all that there is. A zip is unpacked to a new folder.
func open(handIn, unpacked string) (workspace string, err error) {
	if info, err := os.Stat(handIn); err != nil {
		return "", err
	} else if !info.IsDir() {
		if err := unzip(handIn, unpacked); err != nil {
			return "", &refusal{fmt.Errorf("the zip cannot be unpacked: %w", err)}
		}
		handIn = unpacked
	}
	for _, dir := range []string{handIn, filepath.Join(handIn, "workspace")} {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	entries, err := os.ReadDir(handIn)
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), ".") || e.Name() == "__MACOSX"
	})
	if err == nil && len(entries) == 1 && entries[0].IsDir() {
		return open(filepath.Join(handIn, entries[0].Name()), "")
	}
	return handIn, err
}

// unzip writes the files of a zip to a new folder. A name that is no UTF-8, as Windows in Korea writes it, is a little changed.
func unzip(file, dir string) error {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range archive.File {
		name := path.Clean(strings.ReplaceAll(strings.ToValidUTF8(f.Name, "_"), `\`, "/"))
		if strings.HasSuffix(f.Name, "/") {
			err = root.MkdirAll(name, 0o755)
		} else {
			err = extract(f, root, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func extract(f *zip.File, root *os.Root, name string) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	to, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
