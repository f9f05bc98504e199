// Package importtest uses the library as an importer does: from module zips, without this checkout.
package importtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func TestImport(t *testing.T) {
	importer := filepath.Join(t.TempDir(), "importer")
	if err := os.CopyFS(importer, os.DirFS("../e2e/example")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"clusters", "clusters/e2e"} {
		path := "github.com/example/operator-lab/" + folder
		run(t, importer, nil, "go", "mod", "edit", "-replace", path+"="+unpack(t, path, folder))
	}
	for _, provider := range []string{"kind", "embedded"} {
		t.Run(provider, func(t *testing.T) {
			run(t, importer, []string{"CLUSTER=" + provider}, "go", "test", "-count=1", "-timeout=20m", "./...")
		})
	}
}

// unpack makes the zip of a module from the commit that is checked out, and unpacks it.
func unpack(t *testing.T, path, folder string) (dir string) {
	t.Helper()
	version, dir := module.Version{Path: path, Version: "v0.1.0"}, filepath.Join(t.TempDir(), "module")
	file, err := os.Create(dir + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := zip.CreateFromVCS(file, version, "../..", "HEAD", folder); err != nil {
		t.Fatal(err)
	}
	if err := zip.Unzip(dir, version, file.Name()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func run(t *testing.T, dir string, env []string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, "GOWORK=off")...)
	out, err := cmd.CombinedOutput()
	t.Logf("%v\n%s", command, out)
	if err != nil {
		t.Fatal(err)
	}
}
