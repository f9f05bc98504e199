package plain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/plain"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a report":               {"a\tb\n\n  c\n", "a\tb\n\n  c\n"},
		"every script":           {"José 정하나 e\u0301 می\u200cخواهم 👩\u200d💻 a\u00a0b", "José 정하나 e\u0301 می\u200cخواهم 👩\u200d💻 a\u00a0b"},
		"colours":                {"\x1b[1;31mERROR\x1b[0m", "ERROR"},
		"a title":                {"a\x1b]0;title\x07b\x1b]2;title\x1b\\c", "abc"},
		"a title without end":    {"\x1b]0;a\nb", "0;a\nb"},
		"half a sequence":        {"a\x1b", "a�"},
		"a line written over":    {"bad\rgood", "bad�good"},
		"lines of Windows":       {"a\r\nb\r\n", "a\nb\n"},
		"another direction":      {"a\u202eb\u2066c\u200fd", "a�b�c�d"},
		"invisible, or no UTF-8": {"a\x00b\u200bc\xffd", "a�b�c�d"},
	} {
		if got := plain.Text(c.text); got != c.want {
			t.Errorf("%s: Text(%q) = %q, want %q", name, c.text, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		" a \t b\r\nc\vd ": "a b c d", "a \x1b[m b \x1b[m": "a b", "a\u202eb": "a�b", "": "",
	} {
		if got := plain.Line(text); got != want {
			t.Errorf("Line(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{"정하나": "정하나", "abcd": "ab…", "a\n\nb": "a b", "\x1b[31mabc": "abc"} {
		if got := plain.Short(text, 3); got != want {
			t.Errorf("Short(%q, 3) = %q, want %q", text, got, want)
		}
	}
}

func TestWithin(t *testing.T) {
	type word string
	type part struct {
		Words []word
		Next  *part
	}
	type whole struct {
		At     time.Time
		Text   string
		Parts  []part
		N      int
		hidden string
	}
	now := time.Now()
	got := whole{now, "\x1b[31ma", []part{{[]word{"b\x00"}, &part{Words: []word{"\xff"}}}}, 1, "\x00"}
	plain.Within(&got)
	want := whole{now, "a", []part{{[]word{"b�"}, &part{Words: []word{"�"}}}}, 1, "\x00"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(whole{})); diff != "" {
		t.Error(diff)
	}
}
