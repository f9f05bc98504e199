package process

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestHeadAndTailHaveALimit(t *testing.T) {
	head, tail := &Head{Limit: 5}, &Tail{Limit: 5}
	both := io.MultiWriter(head, tail)
	for _, text := range []string{"ab", "cdefg", strings.Repeat("x", 1000), "yz"} {
		if n, err := fmt.Fprint(both, text); n != len(text) || err != nil {
			t.Fatalf("of %d bytes, %d were taken: %v", len(text), n, err)
		}
	}
	if head.String() != "abcde" || tail.String() != "xxxyz" {
		t.Errorf("kept %q and %q", head, tail)
	}
	fmt.Fprint(both, strings.Repeat("x", 5))
	if len(head.data) > 5 || len(tail.data) > 10 {
		t.Errorf("%d and %d bytes are held", len(head.data), len(tail.data))
	}
}
