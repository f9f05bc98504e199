package suite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadResultsSkipsPartialLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), ResultsFile)
	expect := func(want ...Result) {
		t.Helper()
		got, err := ReadResults(path)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	expect()
	first := Result{Run: "a", Check: "creates", State: Passed}
	if err := Append(path, first); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, _ = f.WriteString(`{"run":"a","check":"rep`)
	expect(first)
	_, _ = f.WriteString("airs\",\"state\":\"failed\"}\n")
	expect(first, Result{Run: "a", Check: "repairs", State: Failed})
}
