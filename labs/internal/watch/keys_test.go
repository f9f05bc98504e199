package watch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeysAndWhatTheyMean(t *testing.T) {
	for sent, want := range map[string][]Key{
		"h": {Hint}, "H": {Hint}, "n": {Next}, "r": {Again}, "\r": {Again}, "\n": {Again}, "q": {Quit}, "\x04": {Quit},
		"x": nil, " ": nil, "ü": nil,
		"hx\nq":  {Hint, Again, Quit},
		"\x1bOq": nil, "\x1b[1;5n": nil, "h\x1b[n": {Hint}, // arrows, and others that consist of letters
	} {
		if diff := cmp.Diff(want, meant([]byte(sent))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", sent, diff)
		}
	}
}

func TestWithoutATerminalThereAreNoKeys(t *testing.T) {
	k, err := OpenKeyboard(strings.NewReader("q"))
	if err != nil || k != nil {
		t.Fatalf("%v, %v", k, err)
	}
	if k.Keys(t.Context()) != nil {
		t.Error("a keyboard that is none has keys")
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}
