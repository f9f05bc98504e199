package owns

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

func stormOf(seed uint64) *storm {
	s := &storm{force: forces[""], rand: rand.New(rand.NewPCG(seed, 0))}
	for range s.memcacheds {
		s.residents = append(s.residents, &resident{Memcached: harness.Invent(s.rand, "n")})
	}
	return s
}

// name is something that two blows of the same kind have in common.
func name(b blow) string {
	for i, a := range acts {
		if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b.act).Pointer() {
			return fmt.Sprint(i, " ", b.on.Name, " ", b.after)
		}
	}
	return "unknown"
}

func TestEveryRoundHoldsEveryAct(t *testing.T) {
	for seed := range uint64(200) {
		seen := map[byte]bool{}
		hit := map[*resident]bool{}
		s := stormOf(seed)
		for _, b := range s.gust(true, acts...) {
			seen[name(b)[0]], hit[b.on] = true, true
			if b.after < 0 || b.after >= breath {
				t.Errorf("a pause of %s", b.after)
			}
		}
		if len(seen) != len(acts) || len(hit) != len(s.residents) {
			t.Fatalf("seed %d has %d of %d acts, on %d of %d Memcacheds", seed, len(seen), len(acts), len(hit), len(s.residents))
		}
	}
}

func TestASeedDrawsTheSameStorm(t *testing.T) {
	draw := func(seed uint64) (drawn []string) {
		s := stormOf(seed)
		for _, b := range append(s.gust(true, acts...), s.gust(false, acts...)...) {
			drawn = append(drawn, name(b))
		}
		return drawn
	}
	if diff := cmp.Diff(draw(7), draw(7)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(draw(7), draw(8)) {
		t.Error("another seed draws the same")
	}
}

func TestWhatIsDrawnAnewIsNew(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	m := &resident{Memcached: harness.Memcached{Size: 1, Port: 20000}}
	for range 2000 {
		size := m.Size
		if m.drawSize(r); m.Size == size || m.Size < 1 || m.Size > 5 {
			t.Fatalf("size %d after %d", m.Size, size)
		}
		if m.drawPort(r); slices.Contains(m.past, m.Port) {
			t.Fatalf("port %d comes back", m.Port)
		}
	}
}

// ruins is a world after a storm in which all is well, and some edits that make it not so.
func ruins(edits ...func(world)) world {
	w := world{map[string]*unstructured.Unstructured{}, map[string]*appsv1.Deployment{}}
	m := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"size": "3"}}}
	m.SetUID("new")
	w.memcacheds["tea"] = m
	w.deployments["tea"] = child("tea", "new")
	for _, edit := range edits {
		edit(w)
	}
	return w
}

func child(name string, owner types.UID) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("of-" + name), Generation: 3,
			OwnerReferences: []metav1.OwnerReference{{Kind: "Memcached", Name: "tea", UID: owner, Controller: new(true)}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--port=23456"}}}}},
		},
	}
}

func container(w world) *corev1.Container {
	return &w.deployments["tea"].Spec.Template.Spec.Containers[0]
}

func TestTheWorldAfterAStorm(t *testing.T) {
	tea := &resident{Memcached: harness.Memcached{Namespace: "n", Name: "tea", Size: 3, Port: 23456}, past: []int32{22222, 2345}}
	for name, c := range map[string]struct {
		edit        func(world)
		cause, seen string
	}{
		"all is well":       {func(world) {}, "", ""},
		"no Deployment":     {func(w world) { delete(w.deployments, "tea") }, "not-converged", "there is no Deployment"},
		"the old Memcached": {func(w world) { w.deployments["tea"] = child("tea", "old") }, "wrong-owner", "uid old"},
		"nobody's":          {func(w world) { w.deployments["tea"].OwnerReferences = nil }, "wrong-owner", "no controller"},
		"no controller":     {func(w world) { w.deployments["tea"].OwnerReferences[0].Controller = nil }, "wrong-owner", "no controller"},
		"replicas":          {func(w world) { w.deployments["tea"].Spec.Replicas = new(int32(1)) }, "not-converged", "spec.replicas: want 3, have 1"},
		"image":             {func(w world) { container(w).Image = "drifted" }, "not-converged", "have drifted"},
		"no port":           {func(w world) { container(w).Args = nil }, "not-converged", "want 23456, have none"},
		"part of the port":  {func(w world) { container(w).Args = []string{"--port=123456"} }, "not-converged", "have none"},
		"old port as well": {func(w world) {
			container(w).Args = append(container(w).Args, "--port=22222")
		}, "not-converged", "want 23456, have 22222"},
		"old port in a note": {func(w world) {
			container(w).Ports = []corev1.ContainerPort{{ContainerPort: 22222}}
		}, "", ""},
		"today's in a note alone": {func(w world) {
			container(w).Args, container(w).Ports = []string{"--port=22222"}, []corev1.ContainerPort{{ContainerPort: 23456}}
		}, "not-converged", "want 23456, have 22222"},
		"port in a variable": {func(w world) {
			container(w).Args, container(w).Env = nil, []corev1.EnvVar{{Name: "PORT", Value: "23456"}}
		}, "", ""},
		"two containers": {func(w world) {
			pod := &w.deployments["tea"].Spec.Template.Spec
			pod.Containers = append(pod.Containers, corev1.Container{})
		}, "not-converged", "2"},
		"a second one":      {func(w world) { w.deployments["tea-2"] = child("tea-2", "new") }, "duplicate", "tea-2"},
		"one of the past":   {func(w world) { w.deployments["milk"] = child("milk", "gone") }, "leftover", "uid gone"},
		"one without owner": {func(w world) { w.deployments["milk"] = &appsv1.Deployment{} }, "leftover", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ruins(c.edit)
			err := rightOwner(tea, w)
			if err == nil {
				err = rightDeployment(tea, w)
			}
			if err == nil {
				err = noneTooMany(w)
			}
			findingtest.Require(t, err, c.cause, c.seen)
		})
	}
}

func TestOnlyWhatAnOperatorWritesHasMoved(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(world)
		want string
	}{
		"nothing":                            {func(world) {}, ""},
		"another Deployment":                 {func(w world) { w.deployments["tea"].UID = "another" }, "the Deployment"},
		"its spec":                           {func(w world) { w.deployments["tea"].Generation++ }, "the spec of the Deployment"},
		"the deployment controller's status": {func(w world) { w.deployments["tea"].Status.Replicas++ }, ""},
		"the status":                         {func(w world) { w.memcacheds["tea"].Object["status"] = map[string]any{"size": "4"} }, "the status"},
	} {
		if got := moved("tea", ruins(), ruins(c.edit)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAFindingTellsWhatHappenedToItsMemcached(t *testing.T) {
	s := stormOf(1)
	one, other := s.residents[0].Name, s.residents[1].Name
	s.started = time.Now()
	for i := range 20 {
		s.tell("%s shall have size %d", one, i)
	}
	s.tell("%s is deleted for good", other)
	s.tell("your manager is killed")
	err := rightDeployment(s.residents[0], world{})
	told := s.inContext(err)
	findingtest.Require(t, told, "not-converged", "your manager is killed")
	findingtest.Require(t, told, "not-converged", one+" shall have size 19")
	if text := told.Error(); len(text) > 2000 {
		t.Errorf("a report of %d letters", len(text))
	}
	for _, unwanted := range []string{other, one + " shall have size 3\n"} {
		if text := told.Error(); strings.Contains(text, unwanted) {
			t.Errorf("%q is told: %s", unwanted, text)
		}
	}
}
