package roster

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
)

// ids are those of learners, in order.
func ids(learners []Learner) string {
	var all []string
	for _, l := range learners {
		all = append(all, l.ID)
	}
	return strings.Join(all, " ")
}

func admitted(t *testing.T, r *Room, names ...string) (came, others []Learner) {
	t.Helper()
	entries, err := parse([]byte(strings.Join(names, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return r.Admit(entries)
}

func TestALargerNumberAdds(t *testing.T) {
	r := &Room{}
	if came := r.Grow(2); ids(came) != "learner-1 learner-2" {
		t.Errorf("came: %v", came)
	}
	first := r.Learners[0]
	if came := r.Grow(3); ids(came) != "learner-3" || r.Learners[0] != first {
		t.Errorf("came: %v; %v was %v", came, r.Learners[0], first)
	}
	if came := r.Grow(1); len(came) > 0 || len(r.Learners) != 3 {
		t.Errorf("a smaller number: %v came, %v are there", came, r.Learners)
	}
}

func TestARosterAddsAndNobodyLeaves(t *testing.T) {
	r := &Room{}
	admitted(t, r, "Ada", "Zoë")
	came, others := admitted(t, r, "Grace", "zoe", "ADA")
	if ids(came) != "grace" || len(others) > 0 {
		t.Errorf("came %v, not listed %v", came, others)
	}
	came, others = admitted(t, r, "Grace")
	if len(came) > 0 || ids(others) != "ada zoe" || ids(r.Learners) != "ada zoe grace" {
		t.Errorf("came %v, not listed %v, there are %v", came, others, r.Learners)
	}
	if r.Learners[1].Name != "Zoë" {
		t.Errorf("Zoë is called %q", r.Learners[1].Name)
	}
}

func TestLatecomersToARosterArePseudonyms(t *testing.T) {
	r := &Room{}
	admitted(t, r, "Ada", "learner-3")
	if came := r.Grow(4); ids(came) != "learner-4 learner-5" {
		t.Errorf("came: %v", came)
	}
}

// A name without Latin letters has somebody else's kind of id, and is still found again by the name.
func TestNamesThatAreNoLabelsGetPseudonymsForIDs(t *testing.T) {
	r := &Room{}
	admitted(t, r, "李明", "learner-1", "王芳")
	if ids(r.Learners) != "learner-2 learner-1 learner-3" {
		t.Errorf("%v", r.Learners)
	}
	if came, others := admitted(t, r, "王芳", "李明", "learner-1"); len(came)+len(others) > 0 {
		t.Errorf("came %v, not listed %v", came, others)
	}
	// One who is called what another one has for an id is another one.
	if came, _ := admitted(t, r, "learner-3"); ids(came) != "learner-4" || came[0].Name != "learner-3" {
		t.Errorf("came %v", came)
	}
}

func TestEveryLearnerHasAClusterOfTheirOwn(t *testing.T) {
	r := &Room{}
	r.Grow(MostLearners)
	seen := map[string]bool{}
	for _, name := range r.Clusters() {
		if seen[name] || !regexp.MustCompile(`^lab-classroom-[0-9a-f]{8}$`).MatchString(name) {
			t.Errorf("cluster %q", name)
		}
		seen[name] = true
	}
	if len(seen) != MostLearners {
		t.Errorf("%d clusters", len(seen))
	}
}

func TestARoomIsKeptForItsOwnerAlone(t *testing.T) {
	state := t.TempDir()
	r, err := Load(state)
	if err != nil || len(r.Learners) > 0 || r.Provider != "" {
		t.Fatalf("a room that does not exist: %+v, %v", r, err)
	}
	r.Provider, r.Address = "kind", "192.168.1.5"
	admitted(t, r, "Ada", "李明")
	for range 2 {
		if err := r.Save(state); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Load(state)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(r) {
		t.Errorf("saved %+v, loaded %+v, %v", r, again, err)
	}
	for path, mode := range map[string]os.FileMode{Dir(state): 0o700, file(state): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if entries, err := os.ReadDir(Dir(state)); err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
	if err := Forget(state); err != nil {
		t.Fatal(err)
	}
	if r, err := Load(state); err != nil || len(r.Learners) > 0 {
		t.Errorf("a forgotten room: %+v, %v", r, err)
	}
}

func TestNothingButTheNameIsKept(t *testing.T) {
	state := t.TempDir()
	entries, err := parse([]byte("name,e-mail,mark\nAda,ada@example.com,1.3\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := &Room{Schema: schema}
	r.Admit(entries)
	if err := r.Save(state); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file(state))
	if err != nil || strings.Contains(string(data), "example.com") || strings.Contains(string(data), "1.3") {
		t.Errorf("%s, %v", data, err)
	}
}

func TestARoomOfALaterVersionIsNotGuessedAt(t *testing.T) {
	state := t.TempDir()
	r := &Room{Schema: schema + 1}
	if err := r.Save(state); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(state); err == nil {
		t.Error("it was read")
	}
}

func TestTheKubeconfigOfALearnerIsThatOfTheirCluster(t *testing.T) {
	state := t.TempDir()
	r := &Room{}
	l := r.Grow(1)[0]
	if err := clusters.MakeDir(state, l.Cluster); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"of a first cluster", "of another one, made in its place"} {
		if err := os.WriteFile(clusters.Kubeconfig(state, l.Cluster), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := l.Link(state); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(l.Kubeconfig(state)); err != nil || string(got) != content {
			t.Errorf("kubeconfig %q, %v", got, err)
		}
	}
	if info, err := os.Stat(l.Dir(state)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Stat(l.Kubeconfig(state)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
