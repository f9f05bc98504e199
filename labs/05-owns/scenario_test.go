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

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

func scenarioOf(seed uint64) *scenario {
	s := &scenario{profile: profiles[""], rand: rand.New(rand.NewPCG(seed, 0))}
	for i := range s.memcacheds {
		m := env.Memcached{Namespace: "n", Name: fmt.Sprint("m", i), Size: 2 + s.rand.Int32N(3), Port: 20000 + s.rand.Int32N(10000)}
		s.targets = append(s.targets, &target{Memcached: m})
	}
	return s
}

// name is something that two steps of the same kind have in common.
func name(b step) string {
	for i, a := range actions {
		if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b.action).Pointer() {
			return fmt.Sprint(i, " ", b.on.Name, " ", b.after)
		}
	}
	return "unknown"
}

func TestEveryRoundHoldsEveryAct(t *testing.T) {
	for seed := range uint64(200) {
		seen := map[byte]bool{}
		hit := map[*target]bool{}
		s := scenarioOf(seed)
		for _, b := range s.phase(true, actions...) {
			seen[name(b)[0]], hit[b.on] = true, true
			if b.after < 0 || b.after >= longestPause {
				t.Errorf("a pause of %s", b.after)
			}
		}
		if len(seen) != len(actions) || len(hit) != len(s.targets) {
			t.Fatalf("seed %d has %d of %d actions, on %d of %d Memcacheds", seed, len(seen), len(actions), len(hit), len(s.targets))
		}
	}
}

func TestASeedDrawsTheSameStorm(t *testing.T) {
	draw := func(seed uint64) (drawn []string) {
		s := scenarioOf(seed)
		for _, b := range append(s.phase(true, actions...), s.phase(false, actions...)...) {
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
	m := &target{Memcached: env.Memcached{Size: 1, Port: 20000}}
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

// A manager is killed after a creation, and whoever hides what it creates must not choose the moment.
func TestACreationOfAMemcachedsDeployment(t *testing.T) {
	for name, tc := range map[string]struct {
		request apiproxy.Request
		counts  bool
	}{
		"of a Memcached's":    {apiproxy.Request{Verb: "create", Resource: env.Deployments, Status: 201, Object: "m"}, true},
		"by apply":            {apiproxy.Request{Verb: "patch", Resource: env.Deployments, Status: 201, Object: "m"}, true},
		"of another":          {apiproxy.Request{Verb: "create", Resource: env.Deployments, Status: 201, Object: "decoy"}, false},
		"refused":             {apiproxy.Request{Verb: "create", Resource: env.Deployments, Status: 409}, false},
		"unanswered":          {apiproxy.Request{Verb: "create", Resource: env.Deployments, Status: 502}, false},
		"of something else":   {apiproxy.Request{Verb: "create", Resource: "configmaps", Status: 201}, false},
		"a write and no more": {apiproxy.Request{Verb: "update", Resource: env.Deployments, Status: 200, Object: "m"}, false},
	} {
		s := &scenario{targets: []*target{{Memcached: env.Memcached{Name: "m"}}}}
		if counts := s.creation(tc.request); counts != tc.counts {
			t.Errorf("%s: it counts: %t", name, counts)
		}
	}
}

// ruins is a state after a storm in which all is well, and some edits that make it not so.
func ruins(edits ...func(state)) state {
	w := state{map[string]*unstructured.Unstructured{}, map[string]*appsv1.Deployment{}}
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

func container(w state) *corev1.Container {
	return &w.deployments["tea"].Spec.Template.Spec.Containers[0]
}

func TestTheWorldAfterAStorm(t *testing.T) {
	tea := &target{Memcached: env.Memcached{Namespace: "n", Name: "tea", Size: 3, Port: 23456}, past: []int32{22222, 2345}}
	for name, c := range map[string]struct {
		edit        func(state)
		cause, seen string
	}{
		"all is well":       {func(state) {}, "", ""},
		"no Deployment":     {func(w state) { delete(w.deployments, "tea") }, "not-converged", "there is no Deployment"},
		"the old Memcached": {func(w state) { w.deployments["tea"] = child("tea", "old") }, "wrong-owner", "uid old"},
		"nobody's":          {func(w state) { w.deployments["tea"].OwnerReferences = nil }, "wrong-owner", "no controller"},
		"no controller":     {func(w state) { w.deployments["tea"].OwnerReferences[0].Controller = nil }, "wrong-owner", "no controller"},
		"replicas":          {func(w state) { w.deployments["tea"].Spec.Replicas = new(int32(1)) }, "not-converged", "spec.replicas: want 3, have 1"},
		"image":             {func(w state) { container(w).Image = "drifted" }, "not-converged", "have drifted"},
		"no port":           {func(w state) { container(w).Args = nil }, "not-converged", "want 23456, have none"},
		"part of the port":  {func(w state) { container(w).Args = []string{"--port=123456"} }, "not-converged", "have none"},
		"old port as well": {func(w state) {
			container(w).Args = append(container(w).Args, "--port=22222")
		}, "not-converged", "want 23456, have 22222"},
		"old port in a note": {func(w state) {
			container(w).Ports = []corev1.ContainerPort{{ContainerPort: 22222}}
		}, "", ""},
		"today's in a note alone": {func(w state) {
			container(w).Args, container(w).Ports = []string{"--port=22222"}, []corev1.ContainerPort{{ContainerPort: 23456}}
		}, "not-converged", "want 23456, have 22222"},
		"port in a variable": {func(w state) {
			container(w).Args, container(w).Env = nil, []corev1.EnvVar{{Name: "PORT", Value: "23456"}}
		}, "", ""},
		"two containers": {func(w state) {
			pod := &w.deployments["tea"].Spec.Template.Spec
			pod.Containers = append(pod.Containers, corev1.Container{})
		}, "not-converged", "2"},
		"a second one":      {func(w state) { w.deployments["tea-2"] = child("tea-2", "new") }, "duplicate", "tea-2"},
		"one of the past":   {func(w state) { w.deployments["milk"] = child("milk", "gone") }, "leftover", "uid gone"},
		"one without owner": {func(w state) { w.deployments["milk"] = &appsv1.Deployment{} }, "wrong-owner", "without an owner"},
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
		edit func(state)
		want string
	}{
		"nothing":                            {func(state) {}, ""},
		"another Deployment":                 {func(w state) { w.deployments["tea"].UID = "another" }, "the Deployment"},
		"its spec":                           {func(w state) { w.deployments["tea"].Generation++ }, "the spec of the Deployment"},
		"the deployment controller's status": {func(w state) { w.deployments["tea"].Status.Replicas++ }, ""},
		"the status":                         {func(w state) { w.memcacheds["tea"].Object["status"] = map[string]any{"size": "4"} }, "the status"},
	} {
		if got := moved("tea", ruins(), ruins(c.edit)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAFindingTellsWhatHappenedToItsMemcached(t *testing.T) {
	s := scenarioOf(1)
	one, other := s.targets[0].Name, s.targets[1].Name
	s.started = time.Now()
	for i := range 20 {
		s.log("%s shall have size %d", one, i)
	}
	s.log("%s is deleted for good", other)
	s.log("your manager is killed")
	err := rightDeployment(s.targets[0], state{})
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
