package deepcopy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/harness/probe/sharing"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

func TestGeneratedCode(t *testing.T) {
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
		"a field less":      {edit("Conditions", "Others"), "stale", "knows nothing of Conditions"},
		"a function less":   {edit("MemcachedList) DeepCopyObject", "MemcachedList) Other"), "stale", "(*MemcachedList).DeepCopyObject is missing"},
		"another statement": {edit("out.Spec = in.Spec", "out.Spec, _ = in.Spec, 1"), "hand-edited", "`out.Spec, _ = in.Spec, 1`"},
	} {
		t.Run(name, func(t *testing.T) {
			findingtest.Require(t, hasGenerated(workspacetest.New(t, c.edit), right), c.cause, c.seen)
		})
	}
	t.Run("nothing to generate", func(t *testing.T) {
		findingtest.Require(t, hasGenerated(workspacetest.New(t), nil), "generator-failed", "object:generate")
	})
}

func TestCopies(t *testing.T) {
	for name, c := range map[string]struct {
		copied      sharing.Copy
		cause, seen string
	}{
		"a right one":   {sharing.Copy{}, "", ""},
		"conditions":    {sharing.Copy{Shared: []string{"Status.Conditions"}}, "shares-conditions", "Status.Conditions"},
		"items":         {sharing.Copy{Shared: []string{"Items"}}, "shares-items", "Items"},
		"anything else": {sharing.Copy{Shared: []string{"Labels"}}, "shares-memory", "Labels"},
		"a loss":        {sharing.Copy{Lost: []string{"Spec.Size"}}, "loses-data", "Spec.Size"},
		"an accident":   {sharing.Copy{Spoilt: []string{"Spec.Size"}}, "other", "the original's Spec.Size"},
		"no method":     {sharing.Copy{Missing: "no DeepCopy"}, "does-not-build", "no DeepCopy"},
		"a panic":       {sharing.Copy{Panic: "oh\ngoroutine 1"}, "panicked", "panic: oh"},
	} {
		t.Run(name, func(t *testing.T) {
			c.copied.Method = "DeepCopy"
			report := sharing.Report{Filled: []string{"status.conditions"}, Copies: []sharing.Copy{c.copied}}
			findingtest.Require(t, sharesNothing("Memcached", report, "status.conditions"), c.cause, c.seen)
		})
	}
	t.Run("nothing to share", func(t *testing.T) {
		findingtest.Require(t, sharesNothing("Memcached", sharing.Report{Filled: []string{"labels"}}, "status.conditions"), "other", "it has labels")
	})
}

func TestPlacesAreTheLearners(t *testing.T) {
	stack := "oh\ngoroutine 1 [running]:\n\t/w/internal/labprobe/main.go:3\n\t/w/api/v1alpha1/types.go:9 +0x1d\n\t/go/runtime.go:1\n"
	if got, want := places(stack, "/w"), "oh\napi/v1alpha1/types.go:9 +0x1d"; got != want {
		t.Errorf("places = %q, want %q", got, want)
	}
}
