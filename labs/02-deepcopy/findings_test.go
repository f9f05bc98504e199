package deepcopy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/harness/probe"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

func TestHasGenerated(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(workspacetest.New(t), filepath.FromSlash(workspacetest.DeepCopy)))
	if err != nil {
		t.Fatal(err)
	}
	right := map[string]string{workspacetest.DeepCopy: string(data)}
	edit := func(old, replacement string) workspacetest.Edit {
		return workspacetest.Replace(workspacetest.DeepCopy, old, replacement)
	}
	for name, c := range map[string]struct {
		edit        workspacetest.Edit
		cause, seen string
	}{
		"the same":          {edit("package v1alpha1", "// Copyright me\n\npackage v1alpha1"), "", ""},
		"no file":           {workspacetest.Remove(workspacetest.DeepCopy), "missing", "no such file"},
		"no Go":             {edit("package v1alpha1", "hello"), "hand-edited", "expected 'package'"},
		"a field less":      {edit("Conditions", "Others"), "stale", "-\t"},
		"a function less":   {edit("MemcachedList) DeepCopyObject", "MemcachedList) Other"), "stale", "DeepCopyObject"},
		"another statement": {edit("out.Spec = in.Spec", "out.Spec, _ = in.Spec, 1"), "hand-edited", "-\tout.Spec, _ = in.Spec, 1"},
	} {
		t.Run(name, func(t *testing.T) {
			findingtest.Require(t, hasGenerated(workspacetest.New(t, c.edit), right), c.cause, c.seen)
		})
	}
}

func TestSharesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		copied      probe.Copy
		cause, seen string
	}{
		"a right one":   {probe.Copy{}, "", ""},
		"conditions":    {probe.Copy{Shared: []string{"items[0].metadata.labels.a", "items[0].status.conditions[A].status"}}, "shares-conditions", "labels"},
		"items":         {probe.Copy{Shared: []string{"items[0].spec.size", "items[0].status.conditions[A]"}}, "shares-items", "spec.size"},
		"anything else": {probe.Copy{Shared: []string{"metadata.labels.a"}}, "shares-memory", "labels"},
		"a loss":        {probe.Copy{Lost: []string{"spec.size"}}, "loses-data", "spec.size"},
		"no method":     {probe.Copy{Missing: "no DeepCopy"}, "does-not-build", "no DeepCopy"},
		"a panic":       {probe.Copy{Panic: "oh\ngoroutine 1"}, "panicked", "panic: oh"},
	} {
		t.Run(name, func(t *testing.T) {
			findingtest.Require(t, sharesNothing("Memcached", []probe.Copy{c.copied}), c.cause, c.seen)
		})
	}
}

func TestPlacesNameLearnersCode(t *testing.T) {
	stack := "oh\ngoroutine 1 [running]:\n\t/w/internal/labprobe/main.go:3\n\t/w/api/v1alpha1/types.go:9 +0x1d\n\t/go/runtime.go:1\n"
	if got, want := places(stack, "/w"), "oh\napi/v1alpha1/types.go:9 +0x1d"; got != want {
		t.Errorf("places = %q, want %q", got, want)
	}
}
