package modules

import (
	"context"
	"errors"
	"fmt"
	goversion "go/version"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
)

// toolchainModule is the module whose versions are toolchains.
const toolchainModule = "golang.org/toolchain"

// Platforms are those of learners' machines, as GOOS/GOARCH.
func Platforms() []string {
	var all []string
	for _, system := range everywhere() {
		all = append(all, system+"/amd64", system+"/arm64")
	}
	return all
}

// CheckToolchain says what is wrong with the name of a toolchain, such as go1.26.0.
func CheckToolchain(name string) error {
	if !goversion.IsValid(name) || goversion.Lang(name) == name {
		return fmt.Errorf("%q is no toolchain: it is called such as go1.26.0", name)
	}
	return nil
}

// toolchainVersion is the version of the toolchain's module.
func toolchainVersion(name, platform string) string {
	return "v0.0.1-" + name + "." + strings.ReplaceAll(platform, "/", "-")
}

// AbsentToolchains are those that are not in the cache, such as "go1.26.0 for linux/amd64": what
// [Cache.FillToolchains] would download.
func (c Cache) AbsentToolchains(names, platforms []string) ([]string, error) {
	var absent []string
	for _, name := range names {
		for _, platform := range platforms {
			kept, err := c.kept(module.Version{Path: toolchainModule, Version: toolchainVersion(name, platform)})
			if err != nil {
				return nil, fmt.Errorf("look for toolchain %s for %s: %w", name, platform, err)
			}
			if _, ok := whole(kept); !ok {
				absent = append(absent, name+" for "+platform)
			}
		}
	}
	return absent, nil
}

// FillToolchains brings toolchains into the cache, for each platform, and tells log about each. Those that are there
// already are not downloaded again. The Go command verifies each by the checksum database and unpacks it to do so; that
// happens in a folder beside the cache, which is removed: nobody here runs them.
func (c Cache) FillToolchains(ctx context.Context, names, platforms []string, log func(string)) (Stock, error) {
	all := Stock{}
	for _, name := range names {
		for _, platform := range platforms {
			size, err := c.toolchain(ctx, name, platform, log)
			if err != nil {
				return all, fmt.Errorf("download toolchain %s for %s: %w", name, platform, err)
			}
			log(fmt.Sprintf("toolchain %s for %s: %s", name, platform, Megabytes(size)))
			all[toolchainModule+"@"+toolchainVersion(name, platform)] = size
		}
	}
	return all, nil
}

// toolchain returns the size of a toolchain's zip, after it has come into the cache.
func (c Cache) toolchain(ctx context.Context, name, platform string, log func(string)) (int64, error) {
	version := toolchainVersion(name, platform)
	kept, err := c.kept(module.Version{Path: toolchainModule, Version: version})
	if err != nil {
		return 0, err
	}
	if size, ok := whole(kept); ok {
		return size, nil
	}
	log(fmt.Sprintf("toolchain %s for %s: downloading", name, platform))
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return 0, err
	}
	// On the same disk, so that it can be moved.
	stage, err := os.MkdirTemp(filepath.Dir(c.Downloads), "lab-toolchain-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(stage)
	env := []string{"GOMODCACHE=" + stage, removable}
	if _, err := download(ctx, stage, env, toolchainModule+"@"+version); err != nil {
		return 0, err
	}
	from := filepath.Join(stage, "cache", "download", filepath.FromSlash(toolchainModule), "@v", version)
	for _, end := range files() {
		if err := os.Rename(from+end, kept+end); err != nil {
			return 0, err
		}
	}
	size, ok := whole(kept)
	if !ok {
		return 0, errors.New("it is not in the cache")
	}
	return size, nil
}

// files are the ends of a version's files, the zip last: with it, it counts as complete.
func files() []string { return []string{".info", ".mod", ".ziphash", ".zip"} }

// whole says whether a version is complete, and how large its zip is.
func whole(version string) (size int64, ok bool) {
	var info fs.FileInfo
	for _, end := range files() {
		var err error
		if info, err = os.Stat(version + end); err != nil {
			return 0, false
		}
	}
	return info.Size(), true
}
