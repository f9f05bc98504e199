package embeddedtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/clusters/embedded"
)

// TestMain lets this test binary be the supervisor of the clusters that its tests make.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == embedded.SuperviseCommand {
		if err := embedded.Supervise(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// checkout is where this test's own checkout begins.
const checkout = "../.."

// cacheDir is where programs are kept between runs.
func cacheDir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("LAB_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "operator-lab")
}

// newProvider returns a provider whose state is the test's own.
func newProvider(t testing.TB, opts ...embedded.Option) (*embedded.Embedded, string) {
	t.Helper()
	state := t.TempDir()
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	e, err := embedded.New(state, root, cacheDir(t), append([]embedded.Option{embedded.WithLogger(func(line string) { t.Log(line) })}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return e, state
}
