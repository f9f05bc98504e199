package nodeimage

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
)

// addNode makes the image known that Build makes, under that id.
func (e *fakeEngine) addNode(id string) {
	e.t.Helper()
	e.add(localRef(true), entrypoint(), ownLabels(e.t))
	name := "image-" + strings.NewReplacer("/", "_", ":", "_", "@", "_").Replace(localRef(true))
	data, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		e.t.Fatal(err)
	}
	e.write(name, 0o644, strings.Replace(string(data), "sha256:1", "sha256:"+id, 1))
}

const (
	firstID  = "0123456789abcdef"
	secondID = "fedcba9876543210"
)

func mustPack(t *testing.T, e *fakeEngine, cache string) Archive {
	t.Helper()
	a, err := Pack(t.Context(), e.name(), cache, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What is handed out with the digest has to be what is served, whole, and nobody else's.
func TestAPackedImageIsWholeAndHasItsDigest(t *testing.T) {
	e, cache := newFakeEngine(t), t.TempDir()
	e.addNode(firstID)
	e.write("answer-save", 0o644, `echo "the image $2"`)
	a := mustPack(t, e, cache)
	if a.Name() != "node-"+arch+"-0123456789ab.tar.gz" {
		t.Errorf("it is called %s", a.Name())
	}
	data, err := os.ReadFile(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(data); a.SHA256 != hex.EncodeToString(sum[:]) || a.Size != int64(len(data)) {
		t.Errorf("%+v is none of the %d bytes with digest %x", a, len(data), sum)
	}
	if info, err := os.Stat(a.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	f, err := os.Open(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(unzipped); err != nil || string(text) != "the image "+localRef(true)+"\n" {
		t.Errorf("it holds %q, %v", text, err)
	}
	if found, ok := Packed(cache); !ok || found != a {
		t.Errorf("found is %+v", found)
	}
}

func TestAnImageIsPackedOnceAndItsSuccessorInItsPlace(t *testing.T) {
	e, cache := newFakeEngine(t), t.TempDir()
	e.addNode(firstID)
	e.write("answer-save", 0o644, "echo packed")
	first := mustPack(t, e, cache)
	mustPack(t, e, cache)
	if n := strings.Count(e.calls(), "save "); n != 1 {
		t.Errorf("it was packed %d times", n)
	}
	e.addNode(secondID)
	if packed, err := IsPacked(t.Context(), e.name(), cache); err != nil || packed {
		t.Errorf("a newer image is packed: %v, %v", packed, err)
	}
	second := mustPack(t, e, cache)
	if packed, err := IsPacked(t.Context(), e.name(), cache); err != nil || !packed {
		t.Errorf("it is packed: %v, %v", packed, err)
	}
	if found, ok := Packed(cache); !ok || found != second {
		t.Errorf("found is %+v", found)
	}
	for _, name := range []string{first.Path, first.Path + digestEnd} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// Half an archive would have the digest of half an archive, and nobody would notice.
func TestWhatCouldNotBePackedWholeIsNotThere(t *testing.T) {
	e, cache := newFakeEngine(t), t.TempDir()
	e.addNode(firstID)
	e.write("answer-save", 0o644, `echo half; echo "disk is full" >&2; exit 1`)
	_, err := Pack(t.Context(), e.name(), cache, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("error %v", err)
	}
	if found, ok := Packed(cache); ok {
		t.Errorf("found is %+v", found)
	}
	names, err := filepath.Glob(filepath.Join(archiveDir(cache), "*"))
	if err != nil || len(names) != 1 { // the lock
		t.Errorf("left: %v, %v", names, err)
	}
}

func TestWithoutAnImageOfOursThereIsNothingToPack(t *testing.T) {
	e := newFakeEngine(t)
	e.add(clusters.DefaultNodeImage, entrypoint(), nil)
	_, err := Pack(t.Context(), e.name(), t.TempDir(), func(string) {})
	if p, ok := errors.AsType[*clusters.Problem](err); !ok || p.Fix != "make node-image" {
		t.Errorf("error %v", err)
	}
}

func TestALoadedImageIsANode(t *testing.T) {
	e := newFakeEngine(t)
	e.write("answer-load", 0o644, "true")
	if _, err := Load(t.Context(), e.name(), "/some/node.tar.gz"); err == nil || !strings.Contains(err.Error(), "node.tar.gz") {
		t.Errorf("an archive without a node: %v", err)
	}
	e.addNode(firstID)
	image, err := Load(t.Context(), e.name(), "/some/node.tar.gz")
	if err != nil || image.Ref != localRef(true) || !image.Local {
		t.Errorf("%+v, %v", image, err)
	}
	if !strings.Contains(e.calls(), "load --quiet --input /some/node.tar.gz") {
		t.Errorf("the engine was told to %s", e.calls())
	}
}

func TestAnArchiveForAnotherMachineIsRefused(t *testing.T) {
	for name, want := range map[string]string{
		"node-" + arch + "-0123456789ab.tar.gz":   "",
		"node-riscv64-0123456789ab.tar.gz":        "is for riscv64, and this machine is " + arch,
		"course.tar.gz":                           "no archive of a node image",
		"node-" + arch + "-0123456789ab.tar.gz/x": "no archive of a node image",
	} {
		err := CheckArchiveName(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
