package verdict

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/plain"
)

// controlLimit bounds the download of one small module.
const controlLimit = time.Minute

// fetch downloads the modules that ./cmd needs and this machine does not have, and says whether there
// were any. When they cannot be downloaded it finds out whose fault that is: a machine that cannot
// download a module that certainly exists has a *[clusters.Problem]; otherwise the learner asks for
// something that does not exist, and is told by the compiler.
func (c compilation) fetch(ctx context.Context) (bool, error) {
	needed, err := c.missing(ctx)
	if err != nil || len(needed) == 0 {
		return false, err
	}
	if c.offline() {
		return false, &clusters.Problem{
			What: "the code needs Go modules that are not here, and nothing may be downloaded (GOPROXY=off): " + strings.Join(needed, ", "),
			Fix:  "GOMODCACHE=" + c.setting("GOMODCACHE") + " go mod download MODULE@VERSION for those that you know",
		}
	}
	dir, err := os.MkdirTemp("", "modules-")
	if err != nil {
		return false, fmt.Errorf("download modules: %w", err)
	}
	defer os.RemoveAll(dir)
	failure, err := c.download(ctx, dir, needed)
	if err != nil || failure == "" {
		return err == nil, err
	}
	reached, err := c.control(ctx, dir)
	if err != nil || reached {
		return false, err
	}
	return false, &clusters.Problem{
		What: fmt.Sprintf("your code needs Go modules that this machine neither has nor can download (%s): %s", strings.Join(needed, ", "), failure),
		Fix:  fmt.Sprintf("go -C %s mod download, once the network is back (docs/troubleshooting.md, the network)", c.workspace),
	}
}

// offline says whether nothing may be downloaded, as in a container for grading.
func (c compilation) offline() bool { return c.setting("GOPROXY") == "off" }

// setting is a setting of the Go command, "" when it is not known.
func (c compilation) setting(name string) string {
	found := ""
	for _, entry := range c.env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			found = value // the last one counts
		}
	}
	return found
}

// missing are the modules of go.mod that ./cmd imports and that are not in the module cache.
func (c compilation) missing(ctx context.Context) ([]string, error) {
	data, err := plain.ReadFile(filepath.Join(c.workspace, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	file, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return nil, nil //nolint:nilerr // the compiler has told the learner
	}
	absent := slices.DeleteFunc(required(file), func(m requirement) bool { return c.cached(m.from) })
	if len(absent) == 0 {
		return nil, nil
	}
	imports, known := c.unresolved(ctx)
	providers := above(imports)
	var needed []string
	for _, m := range absent {
		if module.CheckPath(m.path) != nil {
			continue // such as -modfile=x, which the Go command would take for a flag; the compiler has told the learner
		}
		if !known || providers.Has(m.path) {
			needed = append(needed, m.path)
		}
	}
	return needed, ctx.Err()
}

// requirement is a module that go.mod asks for, and where it comes from.
type requirement struct {
	path string
	from module.Version // no version: a folder
}

// above are the paths of all modules that may have one of the packages.
func above(packages []string) sets.Set[string] {
	all := sets.New[string]()
	for _, path := range packages {
		for end := len(path); end > 0 && !all.Has(path[:end]); end = strings.LastIndexByte(path[:end], '/') {
			all.Insert(path[:end])
		}
	}
	return all
}

func required(file *modfile.File) []requirement {
	var all []requirement
	for _, r := range file.Require {
		m := requirement{r.Mod.Path, r.Mod}
		for _, replace := range file.Replace {
			if replace.Old.Path == r.Mod.Path && (replace.Old.Version == "" || replace.Old.Version == r.Mod.Version) {
				m.from = replace.New
			}
		}
		all = append(all, m)
	}
	return all
}

// cached says whether the module is unpacked in the module cache, or need not be.
func (c compilation) cached(m module.Version) bool {
	if m.Version == "" {
		return true
	}
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return true // the compiler has told the learner
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return true
	}
	_, err = os.Stat(filepath.Join(c.setting("GOMODCACHE"), filepath.FromSlash(path)+"@"+version))
	return err == nil
}

// listLimit bounds the question what is imported. It takes a second; code of a learner who wants it to may take for ever.
const listLimit = time.Minute

// unresolved are the imports of ./cmd, its own and those of others, that nothing on this machine
// provides. known is false when the Go command cannot even tell what is imported.
func (c compilation) unresolved(ctx context.Context) (imports []string, known bool) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	cmd := c.tool(ctx, "list", "-e", "-deps", "-mod=readonly", "-json=ImportPath,Dir", "./cmd")
	cmd.Env = append(cmd.Env, "GOPROXY=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, false
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Dir string }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return imports, true
		} else if err != nil {
			return nil, false
		}
		if p.Dir == "" {
			imports = append(imports, p.ImportPath)
		}
	}
}

// download downloads modules in the versions that go.mod says. A failure is the Go command's reason; an
// error has nothing to do with modules. go.mod and go.sum are worked on as copies in dir.
func (c compilation) download(ctx context.Context, dir string, modules []string) (failure string, err error) {
	copied := filepath.Join(dir, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := plain.ReadFile(filepath.Join(c.workspace, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("copy %s: %w", name, err)
		}
	}
	args := append([]string{"mod", "download", "-json", "-modfile=" + copied, "--"}, modules...)
	return c.fetched(ctx, c.limit, func(ctx context.Context) *exec.Cmd { return c.command(ctx, nil, args...) })
}

// control downloads a module that certainly exists, and says whether that was possible.
func (c compilation) control(ctx context.Context, dir string) (bool, error) {
	if c.known.Path == "" {
		return false, nil
	}
	own := filepath.Join(dir, "own") // a module of ours: Go looks for one in the folders above, too, and one of them is everybody's
	err := errors.Join(os.MkdirAll(own, 0o700), os.WriteFile(filepath.Join(own, "go.mod"), []byte("module control\n"), 0o600))
	if err != nil {
		return false, fmt.Errorf("make a folder for a download: %w", err)
	}
	failure, err := c.fetched(ctx, controlLimit, func(ctx context.Context) *exec.Cmd {
		cmd := c.command(ctx, []string{"GOMODCACHE=" + filepath.Join(dir, "control"), "GOFLAGS=-modcacherw"}, "mod", "download", "-json", c.known.String())
		cmd.Dir = own
		return cmd
	})
	return failure == "", err
}

// controlModule is small, and a part of this program: who runs it was able to download it.
const controlModule = "golang.org/x/mod"

// ingredient is [controlModule] in this program's own version; nothing where that is not known.
func ingredient() (known module.Version) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return known
	}
	for _, dep := range info.Deps {
		if dep.Path == controlModule {
			known = module.Version{Path: dep.Path, Version: dep.Version}
		}
	}
	return known
}

// fetched runs a `go mod download -json` and says why it failed, "" when it did not.
func (c compilation) fetched(ctx context.Context, limit time.Duration, command func(context.Context) *exec.Cmd) (failure string, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := command(limited)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	if lacking := shortage(ctx, ""); lacking != nil {
		return "", lacking
	}
	switch {
	case limited.Err() != nil:
		return fmt.Sprintf("no answer within %s", limit), nil
	case !errors.As(err, &exited):
		return "", fmt.Errorf("download modules: %w", err)
	}
	return reason(stdout.Bytes(), stderr.String()), nil
}

// reason is why a download failed, in one line.
func reason(modules []byte, rest string) string {
	for decoder := json.NewDecoder(bytes.NewReader(modules)); ; {
		var m struct{ Path, Version, Error string }
		if err := decoder.Decode(&m); err != nil {
			break
		}
		if m.Error != "" {
			return plain.Line(m.Error)
		}
	}
	return plain.Line(rest)
}
