package nodeimage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
)

// ownLabels are those of an image built from the recipe of this checkout.
func ownLabels(t *testing.T) map[string]string {
	t.Helper()
	digest, err := recipeDigest(checkout(), true)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{recipeLabel: digest, operandLabel: Operand}
}

func TestResolvePrefersTheRequestedImage(t *testing.T) {
	e := newFakeEngine(t)
	e.add(localRef(true), entrypoint(), ownLabels(t))
	e.add("kindest/node:v1.30.0", entrypoint(), nil)
	got, err := Resolve(t.Context(), e.name(), "kindest/node:v1.30.0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Image{Ref: "kindest/node:v1.30.0"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestResolvePrefersTheLocalImageToKinds(t *testing.T) {
	e := newFakeEngine(t)
	e.add(localRef(true), entrypoint(), ownLabels(t))
	e.add(clusters.DefaultNodeImage, entrypoint(), nil)
	got, err := Resolve(t.Context(), e.name(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Image{Ref: localRef(true), Local: true, HasOperand: true}, got); diff != "" {
		t.Error(diff)
	}
	if e.calls() != "" {
		t.Errorf("the engine was told to %s", e.calls())
	}
}

func TestResolveTakesTheLocalImageWithoutOperandBeforeKinds(t *testing.T) {
	e := newFakeEngine(t)
	e.add(localRef(false), entrypoint(), map[string]string{recipeLabel: "old"})
	e.add(clusters.DefaultNodeImage, entrypoint(), nil)
	got, err := Resolve(t.Context(), e.name(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Ref != localRef(false) || got.HasOperand {
		t.Errorf("got %+v, want %s without operand", got, localRef(false))
	}
}

func TestResolvePullsKindsDefaultOnce(t *testing.T) {
	e := newFakeEngine(t)
	e.write("answer-pull", 0o644, `mv pulled "image-$(echo "$3" | tr '/:@' '___')"`)
	e.write("pulled", 0o644, `[{"Id":"sha256:2"}]`)
	for range 2 {
		got, err := Resolve(t.Context(), e.name(), "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Image{Ref: clusters.DefaultNodeImage}, got); diff != "" {
			t.Error(diff)
		}
	}
	if want := "pull --quiet " + clusters.DefaultNodeImage + "\n"; e.calls() != want {
		t.Errorf("the engine was told to %q, want %q", e.calls(), want)
	}
}

func TestAPullSaysWhatItIsAndThatItGoesOn(t *testing.T) {
	e := newFakeEngine(t)
	e.write("answer-pull", 0o644, `for i in $(seq 500); do [ ! -e enough ] || break; sleep 0.01; done; mv pulled "image-$(echo "$3" | tr '/:@' '___')"`)
	e.write("pulled", 0o644, `[{"Id":"sha256:2"}]`)
	var lines []string
	r := Resolver{Engine: e.name(), period: time.Millisecond, Log: func(line string) {
		if lines = append(lines, line); len(lines) == 3 {
			e.write("enough", 0o644, "")
		}
	}}
	resolve := func() {
		t.Helper()
		if _, err := r.Resolve(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	resolve()
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "pulling "+clusters.DefaultNodeImage) || !strings.HasPrefix(lines[2], "still pulling ") {
		t.Fatalf("got %q", lines)
	}
	lines = nil
	if resolve(); len(lines) > 0 {
		t.Errorf("about an image that is here: %q", lines)
	}
}

func TestWithoutAnyImageTheErrorNamesTheCommand(t *testing.T) {
	_, err := Resolve(t.Context(), newFakeEngine(t).name(), "")
	problem, ok := errors.AsType[*clusters.Problem](err)
	if !ok || problem.Fix != "make node-image" {
		t.Errorf("got error %v, want a problem that `make node-image` fixes", err)
	}
}

func TestARequestedImageThatIsNoneIsTheRequestsFault(t *testing.T) {
	e := newFakeEngine(t)
	e.add("debian:12", []string{"bash"}, nil)
	for _, ref := range []string{"debian:12", "absent:1"} {
		_, err := Resolve(t.Context(), e.name(), ref)
		if _, ok := errors.AsType[*InputError](err); !ok {
			t.Errorf("Resolve(%s): got error %v, want an InputError", ref, err)
		} else if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), ref) {
			t.Errorf("Resolve(%s): %q is not one line that names it", ref, err)
		}
	}
}

func TestAnEngineThatIsDownIsNotAMissingImage(t *testing.T) {
	e := newFakeEngine(t)
	e.write("down", 0o644, "")
	for _, ref := range []string{"", "kindest/node:v1.30.0"} {
		_, err := Resolve(t.Context(), e.name(), ref)
		problem, ok := errors.AsType[*clusters.Problem](err)
		if !ok || problem.Fix == "make node-image" {
			t.Errorf("Resolve(%q): got error %v, want a problem of the engine", ref, err)
		}
	}
}

func TestAnImageOfAnotherRecipeIsStale(t *testing.T) {
	e := newFakeEngine(t)
	labels := ownLabels(t)
	labels[recipeLabel] = "another"
	e.add(localRef(true), entrypoint(), labels)
	got, err := Resolve(t.Context(), e.name(), "")
	if err != nil {
		t.Fatal(err)
	}
	if !got.Stale {
		t.Errorf("%+v is not stale", got)
	}
}

func TestBuildKeepsAnImageOfTheSameRecipe(t *testing.T) {
	e := newFakeEngine(t)
	e.add(localRef(true), entrypoint(), ownLabels(t))
	got, err := Build(t.Context(), Options{Engine: e.name(), CacheDir: t.TempDir(), Root: checkout(), WithOperand: true})
	if err != nil {
		t.Fatal(err)
	}
	if got.Ref != localRef(true) || e.calls() != "" {
		t.Errorf("got %+v after %q, want the image that was there", got, e.calls())
	}
}

func TestTheRecipeChangesWithWhatGoesIn(t *testing.T) {
	root := t.TempDir()
	gomod := filepath.Join(root, "go.mod")
	requireKind := func(version string) {
		if err := os.WriteFile(gomod, []byte("module x\n\nrequire "+kindModule+" "+version+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]string{}
	add := func(what string, withOperand bool) {
		digest, err := recipeDigest(root, withOperand)
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[digest]; ok {
			t.Errorf("%s has the digest of %s", what, before)
		}
		seen[digest] = what
	}
	requireKind("v0.33.0")
	add("the image", true)
	add("the image without operand", false)
	requireKind("v0.33.1")
	add("the image with another kind", true)
}

func TestKubeadmsImagesAreUnderstood(t *testing.T) {
	for ref, want := range map[string][2]string{
		"registry.k8s.io/kube-apiserver:v1.36.3":  {"kube-apiserver", "v1.36.3"},
		"registry.k8s.io/coredns/coredns:v1.14.2": {"coredns", "v1.14.2"},
		"registry.k8s.io/etcd:3.6.8-0":            {"etcd", "v3.6.8"},
		"registry.k8s.io/pause:3.10":              {"pause", "v3.10"},
	} {
		component, version := componentOf(ref)
		if got := [2]string{component, version}; got != want {
			t.Errorf("componentOf(%s) = %v, want %v", ref, got, want)
		}
	}
}

func TestAnotherVersionThanKubeadmAsksForIsRefused(t *testing.T) {
	if err := checkVersion("kube-apiserver", KubernetesVersion); err != nil {
		t.Error(err)
	}
	if err := checkVersion("etcd", "v3.0.0"); err == nil {
		t.Error("etcd v3.0.0 was accepted")
	}
}
