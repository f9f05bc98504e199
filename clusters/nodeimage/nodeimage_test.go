package nodeimage

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/engine"
	"github.com/example/operator-lab/clusters/internal/layout"
)

// fakeEngine returns a command like docker that has these images, and refuses everything else.
func fakeEngine(t *testing.T, images map[string]engine.Image) string {
	t.Helper()
	dir := t.TempDir()
	for ref, image := range images {
		data, err := json.Marshal([]engine.Image{image})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(ref, "/", "_")), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	script := `#!/bin/sh
case "$1 $2" in
"version "*) echo 1 ;;
"image inspect") cat "$(dirname "$0")/$(echo "$3" | tr / _)" ;;
*) exit 1 ;;
esac
`
	path := filepath.Join(dir, "engine")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

var extra = []ExtraImage{{Ref: "example.com/cache:1", Package: "cache", Program: "/usr/bin/cache"}}

// node is an image of a node: of these inputs with extra, if it was built here.
func node(inputs string) (i engine.Image) {
	i.Config.Entrypoint = []string{entrypoint, systemd}
	if inputs != "" {
		i.Config.Labels = map[string]string{layout.NodeImageLabel: inputs, imagesLabel: extra[0].Ref}
	}
	return i
}

func today(t *testing.T) string {
	t.Helper()
	digest, err := Options{Images: extra}.inputsDigest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestResolveChooses(t *testing.T) {
	const kind = clusters.DefaultNodeImage
	local := Image{Ref: localRef, Local: true, Images: []string{extra[0].Ref}}
	stale := local
	stale.Stale = true
	for name, c := range map[string]struct {
		images    map[string]engine.Image
		extra     []ExtraImage
		requested string
		want      Image
	}{
		"requested":               {map[string]engine.Image{"a/b:1": node(""), localRef: node(today(t))}, extra, "a/b:1", Image{Ref: "a/b:1"}},
		"local before kind's":     {map[string]engine.Image{localRef: node(today(t)), kind: node("")}, extra, "", local},
		"kind's":                  {map[string]engine.Image{kind: node("")}, extra, "", Image{Ref: kind}},
		"local, of other inputs":  {map[string]engine.Image{localRef: node("x")}, extra, "", stale},
		"local, of another extra": {map[string]engine.Image{localRef: node(today(t))}, nil, "", stale},
	} {
		got, err := Options{Engine: fakeEngine(t, c.images), Images: c.extra}.Resolve(t.Context(), c.requested)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	_, err := Resolve(t.Context(), fakeEngine(t, nil), "")
	if !errors.Is(err, clusters.ErrImageMissing) {
		t.Errorf("without any image: %v, want ErrImageMissing", err)
	}
	command := fakeEngine(t, map[string]engine.Image{"debian:12": {}})
	for _, ref := range []string{"debian:12", "absent:1"} {
		_, err := Resolve(t.Context(), command, ref)
		if input, ok := errors.AsType[*InputError](err); !ok || input.Ref != ref || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s requested: %v, want an InputError of one line", ref, err)
		}
	}
	// An engine that is down has no image either.
	if err := os.WriteFile(command, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = Resolve(t.Context(), command, "debian:12")
	if !errors.Is(err, clusters.ErrNoEngine) {
		t.Errorf("engine down: %v, want a problem of the engine", err)
	}
}

func TestBuildKeepsImage(t *testing.T) {
	o := Options{Engine: fakeEngine(t, map[string]engine.Image{localRef: node(today(t))}), CacheDir: t.TempDir(), Images: extra}
	if got, err := Build(t.Context(), o); err != nil || got != localRef {
		t.Errorf("Build() = %s, %v; want the image that was there", got, err)
	}
}

func TestKindFilesMatchGoSum(t *testing.T) {
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nsigs.k8s.io/kind " + kindVersion + " " + kindSum + "\n"; !strings.Contains(string(sums), want) {
		t.Errorf("go.sum lacks %q", want)
	}
}
