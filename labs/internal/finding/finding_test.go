package finding_test

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/finding"
)

// A finding travels in files and over networks, and a learner decides how much there is to say.
func TestAFindingIsBounded(t *testing.T) {
	long := strings.Repeat("ü", 1<<20)
	f := finding.New("stale", long, "%s", long)
	for range 10_000 {
		f.Fields = append(f.Fields, finding.Field{Path: long, Want: long, Have: "1"})
	}
	if size := len(f.Bounded().String()); size > 4<<20 {
		t.Errorf("it takes %d bytes", size)
	}
	short := finding.New("stale", "this", "that").With(finding.Field{Path: "a", Want: "b", Have: "c"})
	if short.Bounded().String() != short.String() {
		t.Errorf("a short finding became %s", short.Bounded())
	}
}
