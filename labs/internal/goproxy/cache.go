package goproxy

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
)

// cache is the folder cache/download of a module cache. Nothing outside it is ever opened, whatever links it has.
type cache struct {
	root *os.Root
}

// name is the path of a version's file below the cache. The module is one that parse or the Go command accepted.
func name(m module.Version, ext string) (string, error) {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(m.Version)
	return filepath.Join(filepath.FromSlash(path), "@v", version+ext), err
}

// open opens a version's file, which has to be a plain one.
func (c *cache) open(m module.Version, ext string) (*os.File, fs.FileInfo, error) {
	name, err := name(m, ext)
	if err != nil {
		return nil, nil, err
	}
	// To open a pipe is to wait for its other end.
	info, err := c.root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no plain file", name)
	}
	f, err := c.root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// read reads a version's small file.
func (c *cache) read(m module.Version, ext string) ([]byte, error) {
	f, _, err := c.open(m, ext)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// complete says whether everything of a version is there that is needed to compile it. The Go command writes the hash
// before it gives the zip its name, and both only after it has verified them; a zip without a hash is what an interrupted
// download has left. The .info is for those who choose a version; where nobody did, the cache has none.
func (c *cache) complete(m module.Version) bool {
	_, err := c.hash(m)
	return err == nil && c.has(m, extZip) && c.has(m, extMod)
}

// has says whether a version's file is there, and has something in it.
func (c *cache) has(m module.Version, ext string) bool {
	f, info, err := c.open(m, ext)
	if err != nil {
		return false
	}
	f.Close()
	return info.Size() > 0
}

// hash is the hash of a version's zip, as in go.sum.
func (c *cache) hash(m module.Version) (string, error) {
	data, err := c.read(m, extSum)
	if err != nil {
		return "", err
	}
	hash := strings.TrimSpace(string(data))
	if !strings.HasPrefix(hash, "h1:") || strings.ContainsAny(hash, " \n") {
		return "", fmt.Errorf("the hash of %s is damaged", m)
	}
	return hash, nil
}

// record is what go.sum says of a version.
func (c *cache) record(m module.Version) ([]byte, error) {
	if !canonical(m.Version) || !c.complete(m) {
		return nil, fs.ErrNotExist
	}
	hash, err := c.hash(m)
	if err != nil {
		return nil, err
	}
	mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		f, _, err := c.open(m, extMod)
		return f, err
	})
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s %s %s\n%s %s/go.mod %s\n", m.Path, m.Version, hash, m.Path, m.Version, mod), nil
}

// versions are those of a module that somebody can choose, sorted: the complete ones that have an .info.
func (c *cache) versions(path string) ([]string, error) {
	escaped, err := module.EscapePath(path)
	if err != nil {
		return nil, err
	}
	dir, err := c.root.Open(filepath.Join(filepath.FromSlash(escaped), "@v"))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		escaped, ok := strings.CutSuffix(name, extZip)
		version, err := module.UnescapeVersion(escaped)
		if !ok || err != nil || !canonical(version) {
			continue
		}
		if m := (module.Version{Path: path, Version: version}); c.complete(m) && c.has(m, extInfo) {
			found = append(found, version)
		}
	}
	if len(found) == 0 {
		return nil, fs.ErrNotExist
	}
	semver.Sort(found)
	return found, nil
}

// list are the complete versions that have a name, one in each line. By the protocol, commits are not listed.
func (c *cache) list(path string) (string, error) {
	versions, err := c.versions(path)
	var lines strings.Builder
	for _, v := range versions {
		if !module.IsPseudoVersion(v) {
			fmt.Fprintln(&lines, v)
		}
	}
	return lines.String(), err
}

// latest is the .info of the version that the Go command would choose: the last release, else the last prerelease,
// else the last commit.
func (c *cache) latest(path string) ([]byte, error) {
	versions, err := c.versions(path)
	if err != nil {
		return nil, err
	}
	best := slices.MaxFunc(versions, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return semver.Compare(a, b)
	})
	return c.read(module.Version{Path: path, Version: best}, extInfo)
}

func rank(version string) int {
	switch {
	case module.IsPseudoVersion(version):
		return 0
	case semver.Prerelease(version) != "":
		return 1
	}
	return 2
}
