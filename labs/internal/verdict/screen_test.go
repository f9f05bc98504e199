package verdict

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/plain"
)

func TestRuleFitsScreen(t *testing.T) {
	for columns, width := range map[string]int{"20": narrowest, "72": 72, "300": widest, "": usual} {
		t.Setenv("COLUMNS", columns)
		for _, title := range []string{"lab 4", "21:14:03 · lab 4 · " + strings.Repeat("internal/a.go ", 20)} {
			var out bytes.Buffer
			Rule(&out, title)
			line, rest, _ := strings.Cut(out.String(), "\n")
			if got := plain.Width(line); got != width || rest != "" || !strings.HasPrefix(line, "── "+title[:5]) || !strings.HasSuffix(line, "─") {
				t.Errorf("on %s columns: %q, want one line of %d with its title", columns, out.String(), width)
			}
		}
	}
}

func TestWrapKeepsCommandsWhole(t *testing.T) {
	got := words.FindAllString("run `make lab-4` (`x`), then `kubectl get pods, and wait", -1)
	if want := []string{"run", "`make lab-4`", "(`x`),", "then", "`kubectl get pods, and wait"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
