package plain_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/plain"
)

func TestTableAlignsByDisplayWidth(t *testing.T) {
	var out strings.Builder
	// The second name is a syllable in three letters, and the third has an accent of its own, as macOS names files.
	err := plain.Table(&out, []string{"NAME", "STATE"}, []string{"김민준", "ready"},
		[]string{"\u1100\u1175\u11b7", "ready"}, []string{"Ana\u0301", "ready"}, []string{"x", ""})
	if err != nil {
		t.Fatal(err)
	}
	want := "NAME    STATE\n김민준  ready\n\u1100\u1175\u11b7      ready\nAna\u0301     ready\nx\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
