package diagnostics

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The API server of a room can be a program that is none, and say of each object what it likes.
func TestNoKindLeadsOutOfTheFolder(t *testing.T) {
	root := t.TempDir()
	s := &Snapshot{}
	for _, kind := range []string{"../Stranger", "Pod"} {
		obj := unstructured.Unstructured{}
		obj.SetKind(kind)
		s.objects.all = append(s.objects.all, obj)
	}
	s.Keep(filepath.Join(root, "pods-run"))
	for name, kept := range map[string]bool{"strangers.yaml": false, "pods-run/pods.yaml": true} {
		if _, err := os.Stat(filepath.Join(root, name)); (err == nil) != kept {
			t.Errorf("%s is kept: %v, want %v", name, err == nil, kept)
		}
	}
}

// A manager can make any number of events and objects.
func TestAFileThatIsKeptHasALimit(t *testing.T) {
	s := &Snapshot{}
	for i := range 40_000 {
		s.objects.events = append(s.objects.events, eventsv1.Event{Reason: fmt.Sprintf("Reason%d", i), Note: strings.Repeat("x", 1000)})
	}
	got := s.files()["events.txt"]
	if len(got) != maxPage || !strings.Contains(got, " Reason0 ") {
		t.Errorf("%d bytes are kept, want the first %d", len(got), maxPage)
	}
}

// As YAML, a megabyte of small maps takes a hundred for a moment.
func TestAnObjectThatIsKeptHasALimit(t *testing.T) {
	s := &Snapshot{}
	for name, maps := range map[string]int{"short": 10, "long": maxObject} {
		s.objects.all = append(s.objects.all, unstructured.Unstructured{Object: map[string]any{
			"kind": "Memcached", "metadata": map[string]any{"name": name}, "spec": slices.Repeat([]any{map[string]any{}}, maps),
		}})
	}
	if got := s.files()["memcacheds.yaml"]; !strings.Contains(got, "name: short") || strings.Contains(got, "name: long") {
		t.Errorf("%d bytes are kept: %.200s", len(got), got)
	}
}
