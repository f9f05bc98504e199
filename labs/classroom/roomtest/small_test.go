//go:build linux

package roomtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/roster"
)

// TestRoomOfTwoSurvivesADeadNode is a short day in a room of two: both learners begin lab 1, one passes it, the node of the
// other's cluster is killed and fixed, and the board and the grades say what the learners saw. Verdicts run on clusters
// that the room lends.
func TestRoomOfTwoSurvivesADeadNode(t *testing.T) {
	r := newRoom(t, "kind", 2)
	server := r.serve(t)
	r.classroom(t, "handouts", "--server", "https://"+server)
	env, _ := goCaches(t)
	env = append(env, "LAB_CACHE="+r.cache)
	handedIn := t.TempDir()
	learners := map[string]*learner{}
	for _, id := range []string{"learner-1", "learner-2"} {
		l := newLearner(t, r.handout(id), nil, env...)
		l.requireRed(t, 1, "")
		learners[id] = l
	}
	learners["learner-1"].requireGreen(t, 1, "")
	for id, l := range learners {
		if err := os.CopyFS(filepath.Join(handedIn, id), os.DirFS(filepath.Join(l.handout, "workspace"))); err != nil {
			t.Fatal(err)
		}
	}

	victim := learners["learner-2"]
	victim.requireCluster(t, true)
	r.killNode(t, "learner-2")
	victim.requireCluster(t, false)
	r.classroom(t, "up")
	victim.requireCluster(t, true)

	want := map[string]string{"learner-1 lab 1": "pass", "learner-2 lab 1": "fail"}
	shown := r.board(t)
	grades := r.grade(t, handedIn)
	for who, verdict := range want {
		if shown[who] != verdict {
			t.Errorf("the board shows %s as %q, and the learner saw %s", who, shown[who], verdict)
		}
		if grades[who] != verdict {
			t.Errorf("the grade of %s is %q, and the learner saw %s", who, grades[who], verdict)
		}
	}
}

// requireCluster wants the key of the handout to open the learner's own cluster, or not to.
func (l *learner) requireCluster(t *testing.T, opens bool) {
	t.Helper()
	config, err := clusters.RESTConfig(filepath.Join(l.handout, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = client.ServerVersion(); (err == nil) != opens {
		t.Errorf("whether %s opens a cluster should be %v: %v", l.handout, opens, err)
	}
}

// killNode kills the node of a learner's cluster, as the kernel does it when memory runs out.
func (r *instructor) killNode(t *testing.T, id string) {
	t.Helper()
	found, err := roster.Load(filepath.Join(r.root, ".lab"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(found.Learners, func(l roster.Learner) bool { return l.ID == id })
	node := found.Learners[i].Cluster + "-control-plane"
	if out, err := exec.CommandContext(t.Context(), "docker", "kill", node).CombinedOutput(); err != nil {
		t.Fatalf("docker kill %s: %v\n%s", node, err, out)
	}
}

// grade are the grades of lab 1 for a folder with the workspaces of learners.
func (r *instructor) grade(t *testing.T, handedIn string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	results := t.TempDir()
	cmd := r.command(ctx, "grade", handedIn, "--labs", "1", "--out", results)
	out, err := cmd.CombinedOutput()
	table, missing := os.ReadFile(filepath.Join(results, "grades.csv"))
	if missing != nil {
		t.Fatalf("classroom grade: no grades: %v\n%s", err, out)
	}
	return verdicts(t, string(table))
}
