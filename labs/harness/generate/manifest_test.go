package generate

import (
	"testing"
)

func TestWhatIsAnObject(t *testing.T) {
	for text, want := range map[string]int{
		"kind: A\n---\nkind: B\n": 2,
		"kind: List\nitems: [{kind: A}, {kind: B}, {kind: List, items: [{kind: C}]}]\n": 3,
		"- {op: add, path: /a, value: b}\n":                                             0, // a patch of kustomize
		"kind: Widget\nitems: [a, b]\n":                                                 1,
	} {
		if all, err := parse("a.yaml", text); err != nil || len(all) != want {
			t.Errorf("%q has %d objects (%v), want %d", text, len(all), err, want)
		}
	}
}
