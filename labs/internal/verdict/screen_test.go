package verdict

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestARuleIsAsWideAsTheScreen(t *testing.T) {
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

func TestANoteFitsTheScreen(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	var out bytes.Buffer
	Note(&out, "waiting for a save — h hint · n next lab · r again · q quit")
	if got, want := out.String(), "waiting for a save — h hint · n next lab\n· r again · q quit\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestACommandInBackquotesStaysOnItsLine(t *testing.T) {
	got := words("run `make lab-4` (`x`), then `kubectl get pods, and wait")
	if want := []string{"run", "`make lab-4`", "(`x`),", "then", "`kubectl get pods, and wait"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A learner's code says what stands in a report, and a board shows it to the instructor.
func TestNoTextTakesMemoryOnTheScreen(t *testing.T) {
	for name, text := range map[string]string{
		"indentation": "x\n" + strings.Repeat("\t", 20_000) + strings.Repeat("a ", 2_000),
		"quotation":   "`" + strings.Repeat(" a", 40_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		(&screen{width: usual}).fold(text, 20, 10)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 50<<20 {
			t.Errorf("%s: %d KB of text took %d MB", name, len(text)>>10, took>>20)
		}
	}
}
