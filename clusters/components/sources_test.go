package components

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSourcesAreOneForEachModule(t *testing.T) {
	got, err := Sources("kwok", "kubectl", "kube-apiserver")
	want := []Source{
		{"clusters/components/kubernetes", []string{"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kubectl"}},
		{"clusters/components/kwok", []string{"sigs.k8s.io/kwok/cmd/kwok"}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := Sources("moon"); err == nil {
		t.Error("the moon has sources")
	}
}
