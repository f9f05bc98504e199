package modules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// Folder is a folder of modules that can be a GOPROXY: what the labs need, and nothing else.
// See https://go.dev/ref/mod#goproxy-protocol for its layout.
type Folder string

// Env are the variables that have a learner's Go command take modules from a GOPROXY alone. go.sum vouches for what
// comes from there, and Go itself does not come from there.
func Env(proxy string) []string {
	return []string{"GOPROXY=" + proxy, "GOSUMDB=off", "GOTOOLCHAIN=local"}
}

// URL is the folder as a GOPROXY on this machine.
func (f Folder) URL() string { return fileURL(string(f)) }

func fileURL(dir string) string {
	return "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/")
}

// Handler serves the files of the folder. It lists no folders.
func (f Folder) Handler() http.Handler { return http.FileServer(filesOnly{http.Dir(f)}) }

// filesOnly has no folders in it.
type filesOnly struct{ http.FileSystem }

func (o filesOnly) Open(name string) (http.File, error) {
	file, err := o.FileSystem.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Missing are the modules that a go.mod names and that are not in the folder.
func (f Folder) Missing(needs []Need) ([]string, error) {
	seen := map[module.Version]bool{}
	var missing []string
	for _, n := range needs {
		file, err := n.modfile()
		if err != nil {
			return nil, err
		}
		for _, m := range required(file) {
			if seen[m] {
				continue
			}
			seen[m] = true
			path, pathErr := module.EscapePath(m.Path)
			version, err := module.EscapeVersion(m.Version)
			if err := errors.Join(pathErr, err); err != nil {
				return nil, fmt.Errorf("look for the modules of %s: %w", n.Name, err)
			}
			if _, err := os.Stat(filepath.Join(string(f), filepath.FromSlash(path), "@v", version+".zip")); err != nil {
				missing = append(missing, m.String())
			}
		}
	}
	return missing, nil
}

// required are the versions that a go.mod asks for, and that come from elsewhere.
func required(file *modfile.File) []module.Version {
	var all []module.Version
	for _, r := range file.Require {
		m := r.Mod
		for _, replace := range file.Replace {
			if replace.Old.Path == m.Path && (replace.Old.Version == "" || replace.Old.Version == m.Version) {
				m = replace.New
				break
			}
		}
		if m.Version != "" { // else it is a folder
			all = append(all, m)
		}
	}
	return all
}

// Fill puts what is needed into the folder. It takes what is there, then what this machine's module cache has, and
// downloads the rest. What has arrived before an error stays. Log is told one line before and after each need.
//
// The Go command works with an empty module cache beside the folder, which is gone afterwards. So the folder gets what
// a learner's machine asks for, and nothing else.
func (f Folder) Fill(ctx context.Context, needs []Need, log func(string)) (_ Stock, err error) {
	sources, err := sources(ctx)
	if err != nil {
		return Stock{}, err
	}
	home := string(f) + ".new"
	downloads := filepath.Join(home, "cache", "download")
	if err := errors.Join(os.RemoveAll(home), os.MkdirAll(downloads, 0o755)); err != nil {
		return Stock{}, fmt.Errorf("download modules: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	env := []string{"GOMODCACHE=" + home, removable, "GOPROXY=" + f.URL() + "," + sources, "GOTOOLCHAIN=local"}
	for _, n := range needs {
		log("modules of " + n.Name)
		if err = n.fetch(ctx, env); err != nil {
			break
		}
		log(fmt.Sprintf("modules up to here: %s", stock(downloads)))
	}
	all := stock(downloads)
	return all, errors.Join(err, f.keep(downloads))
}

// sources is a GOPROXY: the module cache of this machine, and where it downloads from.
func sources(ctx context.Context) (string, error) {
	out, err := command(ctx, "", nil, "env", "-json", "GOMODCACHE", "GOPROXY").Output()
	var s struct{ GOMODCACHE, GOPROXY string }
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		return "", errors.Join(ctx.Err(), fmt.Errorf("find the module cache: go env: %w", err))
	}
	return fileURL(filepath.Join(s.GOMODCACHE, "cache", "download")) + "," + s.GOPROXY, nil
}

// keep moves what the Go command has downloaded into the folder. Of a version the folder keeps three files, and of a
// module a list of the versions that somebody can choose.
func (f Folder) keep(downloads string) error {
	changed := map[string]bool{}
	err := filepath.WalkDir(downloads, func(path string, d fs.DirEntry, err error) error {
		dir, end := filepath.Dir(path), filepath.Ext(path)
		if err != nil || d.IsDir() || filepath.Base(dir) != "@v" || !slices.Contains([]string{".info", ".mod", ".zip"}, end) {
			return err
		}
		rel, err := filepath.Rel(downloads, dir)
		if err != nil {
			return err
		}
		to := filepath.Join(string(f), rel)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		changed[to] = true
		return os.Rename(path, filepath.Join(to, filepath.Base(path)))
	})
	for dir := range changed {
		err = errors.Join(err, writeList(dir))
	}
	return err
}

// writeList writes which versions of a module are there as a whole. By the protocol, commits are not listed.
func writeList(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, file := range files {
		escaped, ok := strings.CutSuffix(file.Name(), ".zip")
		version, err := module.UnescapeVersion(escaped)
		if ok && err == nil && !module.IsPseudoVersion(version) {
			fmt.Fprintln(&list, version)
		}
	}
	return os.WriteFile(filepath.Join(dir, "list"), []byte(list.String()), 0o644)
}

// Stock is what was downloaded: zips, and their size in bytes.
type Stock struct {
	Modules int
	Bytes   int64
}

// stock counts the zips below a folder.
func stock(dir string) (all Stock) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".zip" {
			if info, err := d.Info(); err == nil {
				all.Modules++
				all.Bytes += info.Size()
			}
		}
		return nil // it is for a figure
	})
	return all
}

// String is such as "113 modules, 63 MB".
func (s Stock) String() string {
	noun := "modules"
	if s.Modules == 1 {
		noun = "module"
	}
	return fmt.Sprintf("%d %s, %s", s.Modules, noun, Megabytes(s.Bytes))
}

// Megabytes is a size in bytes for people, such as "63 MB".
func Megabytes(size int64) string { return fmt.Sprintf("%d MB", (size+500_000)/1_000_000) }
