//go:build !windows

package verdict

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/course"
)

// fakeGo stands for `go test`: it notes how it was called and leaves the report of a suite.
const fakeGo = `#!/bin/sh
echo "$@" > "$FAKE_DIR/args"
cp "$LAB_RUN_CONFIG" "$FAKE_DIR/config.json"
pwd > "$FAKE_DIR/pwd"
for arg; do case $arg in -ginkgo.json-report=*) cp "$FAKE_DIR/report.json" "${arg#*=}";; esac; done
exit 1
`

// goTestWith runs GoTest for lab 4 with a suite of which the named check has that state, and all others passed.
func goTestWith(t *testing.T, id string, state types.SpecState) (dir string, err error) {
	t.Helper()
	c, err := course.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	report := types.Report{}
	for _, lab := range c.Labs[:4] {
		for _, check := range lab.Checks {
			spec := types.SpecReport{State: types.SpecStatePassed, LeafNodeLabels: []string{harness.CheckLabel + check.ID}}
			if check.ID == id {
				spec.State = state
			}
			report.SpecReports = append(report.SpecReports, spec)
		}
	}
	data, err := json.Marshal([]types.Report{report})
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, text := range map[string]string{"go": fakeGo, "report.json": string(data)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("FAKE_DIR", dir)
	judge := &Judge{
		Course: c, State: t.TempDir(), Workspace: "/learner/space", Seed: 7,
		Cluster: &clusters.Cluster{Name: "lab-stock", Kubeconfig: "/kube/config", RealPods: true},
		Tools:   Tools{Guard: "/bin/guard", ControllerGen: "/bin/controller-gen"},
	}
	return dir, judge.GoTest(t.Context(), 4, "/tmp/manager")
}

// Otherwise the two sides of the benchmark would not be asked the same.
func TestGoTestAsksWhatACheckAsks(t *testing.T) {
	dir, err := goTestWith(t, "", types.SpecStatePassed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config harness.Config
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	c, err := course.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Judge: &Judge{Course: c}}
	wanted, err := r.suiteLabs([]int{4})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, lab := range wanted {
		for _, check := range lab.Checks {
			ids = append(ids, check.ID)
		}
	}
	if !slices.Equal(config.Checks, ids) || len(ids) == 0 {
		t.Errorf("checks = %q, want those of lab check 4: %q", config.Checks, ids)
	}
	if config.Manager != "/tmp/manager" || config.Workspace != "/learner/space" || config.Kubeconfig != "/kube/config" || !config.RealPods {
		t.Errorf("config = %+v, want manager, workspace and cluster that were given", config)
	}
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil {
		t.Fatal(err)
	}
	// -count=1: a cached result would be no measurement.
	for _, want := range []string{"test -count=1", "./labs -args", "-ginkgo.label-filter=" + labelFilter(config)} {
		if !strings.Contains(string(args), want) {
			t.Errorf("go %s, want %q in it", args, want)
		}
	}
}

func TestGoTestDoesNotPassWithACheckThatDoesNot(t *testing.T) {
	const id = "creates-deployment"
	for _, state := range []types.SpecState{types.SpecStateFailed, types.SpecStateSkipped, types.SpecStatePanicked} {
		if _, err := goTestWith(t, id, state); err == nil || !strings.Contains(err.Error(), id) {
			t.Errorf("a check that is %s: GoTest() = %v, want an error that names %s", state, err, id)
		}
	}
}
