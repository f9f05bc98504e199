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

// The command in the log removes the cluster of a failed test.
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
	if err := m.Healthy(t.Context(), c.Cluster); err != nil {
		t.Error(err)
	}
	command := regexp.MustCompile(`printf . > .*`).FindString(failed.log.String())
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	awaitEnd(t, state)
	if records, err := m.List(t.Context()); err != nil || len(records) > 0 {
		t.Errorf("List() = %+v, %v after the cluster was removed by hand", records, err)
	}
}
