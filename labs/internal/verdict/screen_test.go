package verdict

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRuleFitsScreen(t *testing.T) {
	for columns, width := range map[string]int{"20": narrowest, "40": 40, "72": 72, "300": widest, "": usual} {
		t.Setenv("COLUMNS", columns)
		for _, title := range []string{"lab 4", "21:14:03 · lab 4 · " + strings.Repeat("internal/", 20) + "a.go"} {
			var out bytes.Buffer
			Rule(&out, title)
			line, rest, _ := strings.Cut(out.String(), "\n")
			if got := utf8.RuneCountInString(line); got != width || rest != "" {
				t.Errorf("%d columns wide on a screen of %s, want one line of %d: %q", got, columns, width, out.String())
			}
			if !strings.HasPrefix(line, "── "+title[:5]) || !strings.HasSuffix(line, "─") {
				t.Errorf("%q does not begin with its title and end as a line", line)
			}
		}
	}
}

func TestNoteFitsScreen(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	var out bytes.Buffer
	Note(&out, "waiting for a save — h hint · n next lab · r again · q quit")
	if got, want := out.String(), "waiting for a save — h hint · n next lab\n· r again · q quit\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWrapKeepsCommandsWhole(t *testing.T) {
	got := words.FindAllString("run `make lab-4` (`x`), then `kubectl get pods, and wait", -1)
	if want := []string{"run", "`make lab-4`", "(`x`),", "then", "`kubectl get pods, and wait"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
