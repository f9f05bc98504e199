package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

var memcachedKind = schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"}

// watched records what act does in a cluster that has the namespaces lab-old-abcde and default already.
func watched(t *testing.T, act func(c client.Client, w *Watcher)) *Recording {
	t.Helper()
	path := filepath.Join(t.TempDir(), File)
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientBuilder().WithObjects(namespace("lab-old-abcde"), namespace("default")).Build()
		w := Watch(t.Context(), c, path, memcachedKind, "labs.test")
		if w == nil {
			t.Fatal("it does not watch")
		}
		synctest.Wait()
		act(c, w)
		synctest.Wait()
		w.Add([]apiproxy.Request{{Verb: "create", Resource: "deployments"}, {Verb: "list", Resource: "deployments"}},
			[]apiproxy.Tally{{Verb: "list", Resource: "deployments", Requests: 1}})
		w.Close()
		w.Note("", You, "came too late")
	})
	recording, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return recording
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func deployment(namespace string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache", UID: "of-the-deployment"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Image: "memcached", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}},
		}}}}},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestARecordingHoldsWhatHappenedInNewNamespaces(t *testing.T) {
	r := watched(t, func(c client.Client, w *Watcher) {
		must(t, c.Create(t.Context(), deployment("lab-new-abcde", 3)))
		must(t, c.Create(t.Context(), deployment("lab-old-abcde", 3)))
		must(t, c.Create(t.Context(), deployment("default", 3)))
		w.Note("", You, "stopped your manager")
	})
	var got []string
	for _, s := range r.Observations {
		got = append(got, KindOf(s.Object)+" in "+s.Object.GetNamespace())
	}
	if diff := cmp.Diff([]string{"Deployment in lab-new-abcde", "Deployment in default"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(r.Requests) != 1 || r.Requests[0].Verb != "create" || len(r.Tallies) != 1 || r.Suite != "labs.test" {
		t.Errorf("requests %v, tallies %v, suite %q", r.Requests, r.Tallies, r.Suite)
	}
	if len(r.Notes) != 1 || r.Notes[0].Text != "stopped your manager" {
		t.Errorf("notes %v", r.Notes)
	}
}

func TestARecordingHoldsNoEnvironment(t *testing.T) {
	r := watched(t, func(c client.Client, _ *Watcher) { must(t, c.Create(t.Context(), deployment("default", 3))) })
	d := r.Observations[0].Object.(*appsv1.Deployment)
	if c := d.Spec.Template.Spec.Containers[0]; c.Image != "memcached" || c.Env != nil {
		t.Errorf("recorded %+v", c)
	}
}

func TestAFloodIsCountedNotWritten(t *testing.T) {
	const more = 100
	r := watched(t, func(c client.Client, _ *Watcher) {
		d := deployment("default", 0)
		must(t, c.Create(t.Context(), d))
		for i := range perObject + more - 1 {
			d.Spec.Replicas = new(int32(i))
			must(t, c.Update(t.Context(), d))
			synctest.Wait()
		}
	})
	if len(r.Observations) != perObject {
		t.Errorf("%d observations, want %d", len(r.Observations), perObject)
	}
	if want := []Omission{{Kind: "Deployment", Namespace: "default", Name: "cache", Changes: more}}; cmp.Diff(want, r.Omitted) != "" {
		t.Errorf("omitted %v, want %v", r.Omitted, want)
	}
}

func TestOfALongRowOfRequestsTheLastOneKeptStandsForTheRest(t *testing.T) {
	var sent []apiproxy.Request
	for i := range perRequest + 7 {
		sent = append(sent, apiproxy.Request{Index: i, Verb: "update", Resource: "deployments", Name: "cache", Time: time.Unix(int64(i), 0)})
	}
	kept := inShort(append(sent, apiproxy.Request{Verb: "update", Resource: "deployments", Name: "other"}))
	last := kept[perRequest-1]
	if len(kept) != perRequest+1 || last.Times != 8 || !last.Until.Equal(sent[len(sent)-1].Time) || kept[0].Times != 1 {
		t.Errorf("kept %d, the last stands for %d until %v", len(kept), last.Times, last.Until)
	}
}

func TestATraceThatCannotBeWrittenIsLeftOut(t *testing.T) {
	w := Watch(t.Context(), fake.NewClientBuilder().Build(), filepath.Join(t.TempDir(), "no", "folder"), memcachedKind, "labs.test")
	if w != nil {
		t.Fatal("it watches")
	}
	w.Note("", You, "did something") // and nothing happens
	w.Close()
}

func TestALineThatWasCutShortIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	must(t, os.WriteFile(path, fmt.Appendf(nil, "{\"suite\":\"labs.test\"}\n{\"note\":{\"actor\":\"you\",%s", strings.Repeat(" ", 100)), 0o600))
	r, err := ReadFile(path)
	if err != nil || r.Suite != "labs.test" || len(r.Notes) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
