package plain_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/plain"
)

func TestTableAlignsByDisplayWidth(t *testing.T) {
	var out strings.Builder
	// The second name is a syllable in three letters, and the third has an accent of its own, as macOS names files.
	err := plain.Table(&out, []string{"NAME", "STATE"}, []string{"김민준", "ready"},
		[]string{"\u1100\u1175\u11b7", "ready"}, []string{"Ana\u0301", "ready"}, []string{"x", ""})
	if err != nil {
		t.Fatal(err)
	}
	want := "NAME    STATE\n김민준  ready\n\u1100\u1175\u11b7      ready\nAna\u0301     ready\nx\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTableFoldsItsLastColumn(t *testing.T) {
	var out strings.Builder
	if err := plain.Table(&out, []string{"lab 4", strings.Repeat("word ", 20)}); err != nil {
		t.Fatal(err)
	}
	if want := "lab 4  " + strings.Repeat(" word", 14)[1:] + "\n       word word word word word word\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestWrapKeepsCommandsWhole(t *testing.T) {
	got := plain.Wrap("run `make lab-4` (`x`), then `kubectl get pods, and wait", 1)
	if want := []string{"run", "`make lab-4`", "(`x`),", "then", "`kubectl get pods, and wait"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPathIsShortBelowTheWorkingFolder(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(dir, "a", "b"): "a/b", filepath.Dir(dir): filepath.Dir(dir), dir + "2": dir + "2"} {
		if got := plain.Path(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}
