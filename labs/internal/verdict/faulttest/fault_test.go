//go:build linux

// Package faulttest breaks the machine during a run, for real, and wants the verdict environment, with what is wrong and the
// command that fixes it. It breaks only clusters of its own and its own connection to the container engine.
//
// It has no code of its own. NODE_IMAGE chooses the node image, as it does for the labs.
package faulttest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// lab is the one that is judged: the first with a manager. The workspace is its solution, so that only the machine can be at
// fault.
const lab = 4

// fault is one way in which a machine fails a run.
type fault struct {
	breaks func(node string) // after the first check
	says   string            // a regular expression for the finding
	fix    string            // a part of the command that fixes it
	passes bool              // it is over so soon that the checks may hold after all
}

// TestMachineFaultIsEnvironment goes through the faults one after the other, because they share an engine.
func TestMachineFaultIsEnvironment(t *testing.T) {
	course := coursetest.Load(t, "../../../..")
	image, err := nodeimage.Resolve(t.Context(), "docker", os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := verdict.BuildTools(t.Context(), course.Root, filepath.Join(course.Root, ".lab", "proof"))
	if err != nil {
		t.Fatal(err)
	}
	proxy, state := newEngineProxy(t), t.TempDir()
	owned, err := clusters.New(state, clusters.WithEngine("docker"))
	if err != nil {
		t.Fatal(err)
	}
	judge := verdict.Judge{
		Course: course, State: state, Cache: t.TempDir(), Workspace: coursetest.Stage(t, course, lab), Tools: tools,
		Clusters: owned, NodeImage: image, Progress: func(line string) { t.Log(line) },
	}
	docker := func(args ...string) { // goes past the proxy
		if out, err := exec.Command("docker", append([]string{"-H", proxy.engine}, args...)...).CombinedOutput(); err != nil {
			t.Errorf("docker %q: %v: %s", args, err, out)
		}
	}
	inNode := func(command ...string) func(string) {
		return func(node string) { docker(append([]string{"exec", node}, command...)...) }
	}
	for name, f := range map[string]fault{
		"the node is paused":               {breaks: func(node string) { docker("pause", node) }, says: "is paused", fix: "make lab-4"},
		"the node is killed":               {breaks: func(node string) { docker("kill", node) }, says: "is exited", fix: "make lab-4"},
		"somebody deletes it":              {breaks: func(node string) { docker("rm", "-f", "-v", node) }, says: "0 of its 1 nodes|is exited", fix: "make lab-4"},
		"the kubelet stops":                {breaks: inNode("systemctl", "stop", "kubelet"), says: "kubelet", fix: "make lab-4"},
		"the API server hangs":             {breaks: inNode("pkill", "-STOP", "-x", "kube-apiserver"), says: "API server", fix: "make lab-4"},
		"the API server is killed":         {breaks: inNode("pkill", "-KILL", "-x", "kube-apiserver"), says: "API server", fix: "make lab-4", passes: true},
		"the engine and the node are gone": {func(node string) { proxy.gone.Store(true); docker("kill", node) }, "cannot list the nodes", "make setup", false},
		"the engine and the node hang":     {func(node string) { proxy.hangs.Store(true); docker("pause", node) }, "no answer within", "make setup", false},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge
			j.Ready = func() { f.breaks(currentNode(t, owned)) }
			results, err := j.Check(t.Context(), []int{lab})
			proxy.gone.Store(false)
			proxy.hangs.Store(false)
			requireEnvironment(t, results, err, f)
			deleteLeft(t, owned)
		})
	}
	t.Run("the node image is missing", func(t *testing.T) {
		j := judge
		j.NodeImage.Ref = "operator-lab.local/no-node:v1"
		results, err := j.Check(t.Context(), []int{lab})
		requireEnvironment(t, results, err, fault{says: "is not on this machine", fix: "make node-image"})
	})
}

func requireEnvironment(t *testing.T, results []*verdict.Result, err error, f fault) {
	t.Helper()
	if err != nil || len(results) != 1 {
		t.Fatalf("the run gives %v and the error %v, want one result", results, err)
	}
	r := results[0]
	t.Logf("%s after %.1f s: %s\nfix: %s\nartifacts: %s", r.Verdict, r.Seconds, r.Environment.Finding, r.Environment.Fix, r.Artifacts)
	if f.passes && r.Verdict == verdict.Pass {
		return
	}
	if r.Verdict != verdict.Environment {
		t.Errorf("the verdict is %s, want environment", r.Verdict)
	}
	if !regexp.MustCompile(f.says).MatchString(r.Environment.Finding) || !strings.Contains(r.Environment.Fix, f.fix) {
		t.Errorf("want a finding that says %q and is fixed by %q", f.says, f.fix)
	}
}

// currentNode is the container of the cluster that the run made.
func currentNode(t *testing.T, owned *clusters.Manager) string {
	owners, err := owned.List(t.Context())
	if err != nil || len(owners) != 1 {
		t.Errorf("clusters: %+v, %v, want one", owners, err)
		return ""
	}
	return owners[0].Name + "-control-plane"
}

// deleteLeft deletes what a run had to leave, as the next command of the lab does.
func deleteLeft(t *testing.T, owned *clusters.Manager) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	owners, err := owned.List(ctx)
	if err != nil {
		t.Error(err)
	}
	for _, owner := range owners {
		if err := owned.Delete(ctx, owner.Name); err != nil {
			t.Error(err)
		}
	}
}
