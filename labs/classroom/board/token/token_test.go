package token_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/classroom/board/token"
)

// What is printed once has to open the board later; anything else must not.
func TestATokenIsReadAsItWasRevealed(t *testing.T) {
	tok := token.New()
	again, err := token.Parse(" " + tok.Reveal() + "\n")
	if err != nil || again.ID != tok.ID || !again.Matches(tok.Hash()) {
		t.Errorf("read %v from %q: %v", again, tok.Reveal(), err)
	}
	if token.New().Matches(tok.Hash()) {
		t.Error("another token matches")
	}
	last := tok.Reveal()[len(tok.Reveal())-1]
	wrong := strings.TrimSuffix(tok.Reveal(), string(last)) + string("ab"[boolIndex(last == 'a')])
	if other, err := token.Parse(wrong); err != nil || other.Matches(tok.Hash()) {
		t.Errorf("a token whose last character differs: %v, matches %v", err, other.Matches(tok.Hash()))
	}
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestWhatIsNoTokenIsRefused(t *testing.T) {
	full := token.New().Reveal()
	for _, text := range []string{"", "Bearer " + full, full[:20], "labboard--", strings.ToUpper(full), full + strings.Repeat("a", 64)} {
		if got, err := token.Parse(text); err == nil {
			t.Errorf("%q was taken for %v", text, got)
		}
	}
}

// Tokens end up in errors and log lines by accident.
func TestAPrintedTokenKeepsItsSecret(t *testing.T) {
	tok := token.New()
	secret := strings.TrimPrefix(tok.Reveal(), "labboard-"+tok.ID+"-")
	for _, format := range []string{"%v", "%s", "%+v"} {
		if printed := fmt.Sprintf(format, tok); strings.Contains(printed, secret) {
			t.Errorf("%s prints %s", format, printed)
		}
	}
}
