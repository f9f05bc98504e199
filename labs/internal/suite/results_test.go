package suite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func add(t *testing.T, path string, results ...Result) {
	t.Helper()
	for _, r := range results {
		if err := Append(path, r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReaderWaitsForWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), ResultsFile)
	reader := &Reader{Path: path}
	expect := func(want ...Result) {
		t.Helper()
		got, err := reader.Next()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	expect()
	first, second := Result{Run: "a", Check: "creates", State: Passed}, Result{Run: "a", Check: "repairs", State: Failed}
	add(t, path, first)
	expect(first)
	expect()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, part := range []string{`{"run":"a","check":"rep`, "airs\",\"state\":\"failed\"}\n"} {
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		if part[0] == '{' {
			expect()
		}
	}
	expect(second)
}

func TestRestartedRunDoesNotCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), ResultsFile)
	counts := Result{Run: "b", Check: "creates", State: Passed}
	add(t, path, Result{Run: "a", State: Restart}, Result{Run: "a", Check: "creates", State: Failed}, counts)
	got, err := ReadResults(path)
	if diff := cmp.Diff([]Result{counts}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
