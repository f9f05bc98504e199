package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

const sampleDir = "config/samples"

// samples are the Memcacheds in the workspace's samples; there has to be one.
func samples(workspace string) ([]generate.Manifest, error) {
	all, err := generate.ReadManifests(filepath.Join(workspace, filepath.FromSlash(sampleDir)))
	if err != nil {
		return nil, finding.New("sample-refused", "YAML in "+sampleDir, "%v", err)
	}
	var memcacheds []generate.Manifest
	for _, m := range all {
		if m.Kind() == suite.Kind {
			memcacheds = append(memcacheds, m)
		}
	}
	if len(memcacheds) == 0 {
		return nil, finding.New("no-sample", "a Memcached in "+sampleDir, "none among %d objects", len(all))
	}
	return memcacheds, nil
}

// keeps asks whether a sample is taken under strict validation, with everything that it says and at
// least something to say.
func keeps(ctx context.Context, memcacheds *crd.Resource, namespace string, sample generate.Manifest) error {
	name := sampleDir + "/" + sample.File
	if got, want := sample.Object["apiVersion"], memcacheds.GroupVersion().String(); got != want {
		return finding.New("sample-refused", "`apiVersion: "+want+"` in "+name, "%v", got)
	}
	obj := (&unstructured.Unstructured{Object: sample.Object}).DeepCopy()
	if obj.GetName() == "" {
		return finding.New("no-name", "`metadata.name` in "+name, "none")
	}
	if ns := obj.GetNamespace(); ns != "" && ns != metav1.NamespaceDefault {
		return finding.New("sample-namespace", name+" for any cluster", "the namespace %s, which a new cluster does not have", ns)
	}
	obj.SetNamespace(namespace)
	stored, err := memcacheds.TryCreate(ctx, obj) // two samples may have one name
	if r, refused := crd.Refused(err); refused {
		return finding.New("sample-refused", name+" accepted under strict validation", "refused: %s", r.Text)
	}
	if err != nil {
		return env.TooMuchWork(ctx, "sample-refused", fmt.Errorf("create the Memcached of %s: %w", name, err))
	}
	return keepsSpec(name, obj, stored)
}

// keepsSpec compares what a sample says with what was stored.
func keepsSpec(name string, obj, stored *unstructured.Unstructured) error {
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	if spec["size"] == nil && spec["containerPort"] == nil {
		return finding.New("no-size", name+" with a size or a port", "a spec with %d fields, neither of them", len(spec))
	}
	if lost := missing("spec", obj.Object["spec"], stored.Object["spec"]); len(lost) > 0 {
		return finding.New("field-lost", name+" kept as it is", "after it was stored, changed or gone: %s", strings.Join(lost, ", "))
	}
	return nil
}

// missing lists what stands in sent and not in stored. What the API server adds does not count.
func missing(path string, sent, stored any) []string {
	fields, ok := sent.(map[string]any)
	if !ok {
		if same(sent, stored) {
			return nil
		}
		return []string{path}
	}
	kept, _ := stored.(map[string]any)
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		lost = append(lost, missing(path+"."+name, fields[name], kept[name])...)
	}
	return lost
}

// same compares two values as JSON, in which 3 and 3.0 are one.
func same(a, b any) bool {
	var decoded [2]any
	for i, value := range []any{a, b} {
		data, err := json.Marshal(value)
		if err != nil || json.Unmarshal(data, &decoded[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(decoded[0], decoded[1])
}
