package process

import (
	"fmt"
	"strings"
	"testing"
)

func TestTailHasALimit(t *testing.T) {
	tail := &Tail{Limit: 5}
	for _, text := range []string{"ab", "cdefg", strings.Repeat("x", 1000), "yz"} {
		if n, err := fmt.Fprint(tail, text); n != len(text) || err != nil {
			t.Fatalf("of %d bytes, %d were taken: %v", len(text), n, err)
		}
	}
	if tail.String() != "xxxyz" || len(tail.data) > 10 {
		t.Errorf("kept %q of %d bytes", tail, len(tail.data))
	}
}
