package verdict

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestAPackageMayBeOfEachModuleAboveIt(t *testing.T) {
	want := sets.New("example.org/a/b", "example.org/a", "example.org", "example.org/ab", "fmt")
	if diff := cmp.Diff(want, above([]string{"example.org/a/b", "example.org/ab", "fmt"})); diff != "" {
		t.Error(diff)
	}
}
