package nodeimage

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeEngine is a command line like docker's that knows images from files. It notes every other call.
type fakeEngine struct {
	t   *testing.T
	dir string
}

func newFakeEngine(t *testing.T) *fakeEngine {
	t.Helper()
	e := &fakeEngine{t: t, dir: t.TempDir()}
	e.write("engine", 0o755, `#!/bin/sh
cd "$(dirname "$0")" || exit 1
[ ! -e down ] || { echo "Cannot connect to the daemon" >&2; exit 1; }
case "$1 $2" in
"version "*) echo 1 ;;
"image inspect") cat "image-$(echo "$3" | tr '/:@' '___')" 2>/dev/null || { echo "No such image: $3" >&2; exit 1; } ;;
*) echo "$*" >>calls; [ ! -e "answer-$1" ] || { . "./answer-$1"; exit; }; exit 1 ;;
esac
`)
	return e
}

func (e *fakeEngine) name() string { return filepath.Join(e.dir, "engine") }

func (e *fakeEngine) write(name string, mode os.FileMode, content string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(content), mode); err != nil {
		e.t.Fatal(err)
	}
}

// add makes an image known.
func (e *fakeEngine) add(ref string, entrypoint []string, labels map[string]string) {
	e.t.Helper()
	var image inspection
	image.ID, image.Config.Entrypoint, image.Config.Labels = "sha256:1", entrypoint, labels
	data, err := json.Marshal([]inspection{image})
	if err != nil {
		e.t.Fatal(err)
	}
	e.write("image-"+strings.NewReplacer("/", "_", ":", "_", "@", "_").Replace(ref), 0o644, string(data))
}

// calls are those that did not ask for an image or a version.
func (e *fakeEngine) calls() string {
	data, _ := os.ReadFile(filepath.Join(e.dir, "calls"))
	return string(data)
}
