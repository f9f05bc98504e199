package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

const imageContent = "an image"

// imageName is that of an image for this machine.
func imageName() string { return fmt.Sprintf("node-%s-0123456789ab.tar.gz", runtime.GOARCH) }

func imageDigest() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(imageContent))) }

// withEngine is a learner's app whose engine knows a node image once it has loaded the right file.
func withEngine(t *testing.T) (a *app, out, progress *bytes.Buffer, calls func() string) {
	t.Helper()
	a, out, progress = newTestApp(t)
	t.Setenv("CI", "")
	dir := t.TempDir()
	script := `#!/bin/sh
echo "$*" >>` + dir + `/calls
case "$1" in
version) echo 1 ;;
image) [ -e ` + dir + `/loaded ] || { echo "No such image" >&2; exit 1; }
  echo '[{"Id": "sha256:0123456789abcdef", "Config": {"Entrypoint": ["/usr/local/bin/entrypoint", "/sbin/init"]}}]' ;;
load) [ "$(/bin/cat "$4")" = "an image" ] && : >` + dir + `/loaded ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return a, out, progress, func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "calls"))
		return string(data)
	}
}

// downloaded is a file as curl leaves it.
func downloaded(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestALearnersEngineTakesTheImageOfTheRoom(t *testing.T) {
	a, out, progress, calls := withEngine(t)
	file := downloaded(t, imageName(), imageContent)
	if err := cli.Execute(t.Context(), newRootCommand(a), []string{"node-image", "--file", file, "--sha256", imageDigest()}); err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	if !strings.Contains(out.String(), nodeimage.Repository+":") {
		t.Errorf("it prints %q", out)
	}
	if n := strings.Count(calls(), "load "); n != 1 {
		t.Errorf("it was loaded %d times:\n%s", n, calls())
	}
}

func TestAnImageThatIsNotTheHandoutsIsNeverLoaded(t *testing.T) {
	a, _, _, calls := withEngine(t)
	file := downloaded(t, imageName(), imageContent)
	for name, tc := range map[string]struct {
		file, digest string
		code         int
		says         string
	}{
		"another digest":  {file, strings.Repeat("0", 64), exit.EnvironmentError, "ask for the line"},
		"half of it":      {downloaded(t, imageName(), imageContent[:3]), imageDigest(), exit.EnvironmentError, "goes on where it stopped"},
		"no digest":       {file, "", exit.UsageError, "your handout has the line"},
		"a digest alone":  {"", imageDigest(), exit.UsageError, "is no archive of a node image"},
		"something else":  {downloaded(t, "course.tar.gz", imageContent), imageDigest(), exit.UsageError, "is no archive of a node image"},
		"another machine": {downloaded(t, "node-riscv64-0123456789ab.tar.gz", imageContent), imageDigest(), exit.UsageError, "CLUSTER=embedded"},
		"no such file":    {filepath.Join(t.TempDir(), imageName()), imageDigest(), exit.UsageError, "your handout has the line"},
	} {
		err := cli.Execute(t.Context(), newRootCommand(a), []string{"node-image", "--file", tc.file, "--sha256", tc.digest})
		if exit.Code(err) != tc.code || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if strings.Contains(calls(), "load ") {
		t.Errorf("the engine was told to\n%s", calls())
	}
}

func TestWithoutAnEngineTheAlternativeIsNamed(t *testing.T) {
	a, _, _ := newTestApp(t)
	t.Setenv("PATH", t.TempDir())
	file := downloaded(t, imageName(), imageContent)
	err := cli.Execute(t.Context(), newRootCommand(a), []string{"node-image", "--file", file, "--sha256", imageDigest()})
	if exit.Code(err) != exit.EnvironmentError || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error %v", err)
	}
	if !strings.Contains(err.Error(), "no container engine answers") || !strings.Contains(err.Error(), "make lab-1 CLUSTER=embedded") {
		t.Errorf("got %v", err)
	}
}
