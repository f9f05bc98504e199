package generate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Hundreds of packages under long paths are more than a command line takes: that is no fault of the machine.
func TestAListOfPackagesThatIsTooLongBecomesAll(t *testing.T) {
	for count, want := range map[int]string{1: "paths=./", 40: "paths=./..."} {
		dir := t.TempDir()
		for i := range count {
			deep := filepath.Join(dir, strings.Repeat(strings.Repeat("d", 200)+"/", 10), fmt.Sprint("p", i))
			if err := os.MkdirAll(deep, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(deep, "x.go"), []byte("// +mark\npackage x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := packages(dir, []string{"+mark"})
		if err != nil || !strings.HasPrefix(got, want) || count > 1 && got != want {
			t.Errorf("%d packages: %.100s, %v", count, got, err)
		}
	}
}
