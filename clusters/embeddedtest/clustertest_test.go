package embeddedtest

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters/clustertest"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/embedded"
)

// failedTest is a test that has failed.
type failedTest struct {
	testing.TB
	cleanup func()
	log     strings.Builder
}

func (f *failedTest) Failed() bool                    { return true }
func (f *failedTest) Cleanup(cleanup func())          { f.cleanup = cleanup }
func (f *failedTest) Logf(format string, args ...any) { fmt.Fprintf(&f.log, format+"\n", args...) }

// The commands in the log let the paused cluster of a failed test go on, and remove it.
func TestFailedTestKeepsCluster(t *testing.T) {
	cache, err := components.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LAB_CACHE", cache)
	state := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", state)
	t.Setenv("KEEP", "failed")
	failed := &failedTest{TB: t}
	c := clustertest.New(failed, clustertest.Embedded())
	failed.cleanup()

	m, err := embedded.NewManager(state+"/clustertest", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, command := range regexp.MustCompile(`printf . > .*`).FindAllString(failed.log.String(), -1) {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		if i == 0 {
			if err := m.Healthy(t.Context(), c.Cluster); err != nil {
				t.Errorf("after %s: %v", command, err)
			}
		}
	}
	awaitEnd(t, state)
	if records, err := m.List(t.Context()); err != nil || len(records) > 0 {
		t.Errorf("List() = %+v, %v after the cluster was removed by hand", records, err)
	}
}
