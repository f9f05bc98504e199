package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
)

const sampleDir = "config/samples"

// samples are the Memcacheds in the workspace's samples; there has to be one.
func samples(workspace string) ([]generate.Manifest, error) {
	all, err := generate.ReadManifests(filepath.Join(workspace, filepath.FromSlash(sampleDir)))
	if err != nil {
		return nil, finding.New("sample-refused", "YAML in "+sampleDir, "%v", err)
	}
	memcacheds := slices.DeleteFunc(slices.Clone(all), func(m generate.Manifest) bool { return m.Kind() != "Memcached" })
	if len(memcacheds) == 0 {
		return nil, finding.New("no-sample", "a Memcached in "+sampleDir, "none among %d objects", len(all))
	}
	return memcacheds, nil
}

// accepts wants the API server to take a sample under strict validation, which refuses each field that it would not keep.
func accepts(ctx context.Context, memcacheds *crd.Resource, namespace string, sample generate.Manifest) error {
	name := sampleDir + "/" + sample.File
	obj := &unstructured.Unstructured{}
	data, err := json.Marshal(sample.Object)
	if err == nil {
		err = obj.UnmarshalJSON(data) // which makes 3 a whole number
	}
	if err != nil {
		return finding.New("sample-refused", "a Memcached in "+name, "%v", err)
	}
	size, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "size")
	port, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "containerPort")
	switch ns := obj.GetNamespace(); {
	case obj.GetAPIVersion() != memcacheds.GroupVersion().String():
		return finding.New("sample-refused", "`apiVersion: "+memcacheds.GroupVersion().String()+"` in "+name, "%v", obj.GetAPIVersion())
	case obj.GetName() == "":
		return finding.New("no-name", "`metadata.name` in "+name, "none")
	case ns != "" && ns != metav1.NamespaceDefault:
		return finding.New("sample-namespace", name+" for any cluster", "the namespace %s, which a new cluster does not have", ns)
	}
	obj.SetNamespace(memcacheds.Object(namespace, "").GetNamespace())                 // none if they live in none
	_, err = memcacheds.In(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{ // two samples may have one name
		FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll},
	})
	if r, refused := crd.Refused(err); refused {
		return finding.New("sample-refused", name+" accepted under strict validation", "refused: %s", r.Text)
	}
	if err != nil {
		return fmt.Errorf("create the Memcached of %s: %w", name, err)
	}
	if size == nil && port == nil {
		return finding.New("no-size", name+" with a size or a port", "a spec with neither of them")
	}
	return nil
}
