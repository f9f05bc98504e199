//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/exit"
)

// roomWithImage serves a packed image as the room's server does, and gives the line of the handout.
func roomWithImage(t *testing.T) (from, digest string) {
	t.Helper()
	instructor, out, _ := newTestApp(t)
	name := fmt.Sprintf("node-%s-0123456789ab.tar.gz", runtime.GOARCH)
	data := []byte("an image")
	digest = fmt.Sprintf("%x", sha256.Sum256(data))
	path := filepath.Join(instructor.cache, "images", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{path: data, path + ".sha256": []byte(digest + "\n")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	public := map[string]http.Handler{}
	image, ok := instructor.serveImage(public)
	if !ok {
		t.Fatal("the packed image is not served")
	}
	mux := http.NewServeMux()
	for pattern, handler := range public {
		mux.Handle(pattern, handler)
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	instructor.tellEngines(srv.Listener.Addr(), image)
	from = srv.URL + "/images/" + name
	contains(t, out.String(), "make node-image FROM="+from+" SHA256="+digest+"\n")
	if given := instructor.roomImage(srv.URL); given == nil || given.URL != from || given.SHA256 != digest {
		t.Errorf("handouts say %+v", given)
	}
	return from, digest
}

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

func TestALearnersEngineTakesTheImageOfTheRoom(t *testing.T) {
	from, digest := roomWithImage(t)
	a, out, progress, calls := withEngine(t)
	take := []string{"node-image", "--from", from, "--sha256", digest}
	if err := execute(t.Context(), a, take); err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	contains(t, out.String(), nodeimage.Repository+":")
	if left, err := os.ReadDir(filepath.Join(a.cache, "images", "fetched")); err != nil || len(left) > 0 {
		t.Errorf("the archive is left: %v, %v", left, err)
	}
	if err := execute(t.Context(), a, take); err != nil {
		t.Error(err)
	}
	contains(t, out.String(), "is here already")
	if n := strings.Count(calls(), "load "); n != 1 {
		t.Errorf("it was loaded %d times:\n%s", n, calls())
	}
}

func TestAnImageThatIsNotTheHandoutsIsNeverLoaded(t *testing.T) {
	from, digest := roomWithImage(t)
	a, _, _, calls := withEngine(t)
	other := strings.Replace(from, "node-"+runtime.GOARCH, "node-riscv64", 1)
	for name, tc := range map[string]struct {
		from, digest string
		code         int
		says         string
	}{
		"another digest":  {from, strings.Repeat("0", 64), exit.EnvironmentError, "ask for it"},
		"no digest":       {from, "", exit.UsageError, "your handout has the line"},
		"no address":      {"images", digest, exit.UsageError, "your handout has the line"},
		"another machine": {other, digest, exit.UsageError, "CLUSTER=embedded"},
		"no such image":   {strings.Replace(from, "0123456789ab", "0123456789ac", 1), digest, exit.EnvironmentError, "run it again"},
	} {
		err := execute(t.Context(), a, []string{"node-image", "--from", tc.from, "--sha256", tc.digest})
		if exit.Code(err) != tc.code || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if strings.Contains(calls(), "load ") {
		t.Errorf("the engine was told to\n%s", calls())
	}
}

func TestWithoutAnEngineTheAlternativeIsNamed(t *testing.T) {
	from, digest := roomWithImage(t)
	a, _, _ := newTestApp(t)
	t.Setenv("PATH", t.TempDir())
	err := execute(t.Context(), a, []string{"node-image", "--from", from, "--sha256", digest})
	if exit.Code(err) != exit.EnvironmentError || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error %v", err)
	}
	contains(t, err.Error(), "no container engine answers", "make lab-1 CLUSTER=embedded")
}
