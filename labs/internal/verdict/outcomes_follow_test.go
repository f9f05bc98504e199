package verdict

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"
)

func TestOutcomesAreReadByWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	var heard []string
	offset := int64(0)
	for _, more := range []string{"", `{"LeafNodeText":"a"}` + "\n" + `{"LeafNo`, `deText":"b"}` + "\nno JSON\n", "", `{"LeafNodeText":"c"}` + "\n"} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(more); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		offset += newOutcomes(path, offset, func(s types.SpecReport) { heard = append(heard, s.LeafNodeText) })
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, heard); diff != "" {
		t.Error(diff)
	}
}
