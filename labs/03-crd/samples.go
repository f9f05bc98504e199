package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/operator-lab/labs/harness/crd"
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
	memcacheds := slices.DeleteFunc(slices.Clone(all), func(m generate.Manifest) bool { return m.Kind() != suite.Kind })
	if len(memcacheds) == 0 {
		return nil, finding.New("no-sample", "a Memcached in "+sampleDir, "none among %d objects", len(all))
	}
	return memcacheds, nil
}

// keeps asks whether a sample is taken under strict validation, with everything that it says and at
// least something to say.
func keeps(ctx context.Context, memcacheds *crd.Resource, namespace string, sample generate.Manifest) error {
	name := sampleDir + "/" + sample.File
	obj, err := decode(sample)
	if err != nil {
		return finding.New("sample-refused", "a Memcached in "+name, "%v", err)
	}
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	switch ns := obj.GetNamespace(); {
	case obj.GetAPIVersion() != memcacheds.GroupVersion().String():
		return finding.New("sample-refused", "`apiVersion: "+memcacheds.GroupVersion().String()+"` in "+name, "%v", obj.GetAPIVersion())
	case obj.GetName() == "":
		return finding.New("no-name", "`metadata.name` in "+name, "none")
	case ns != "" && ns != metav1.NamespaceDefault:
		return finding.New("sample-namespace", name+" for any cluster", "the namespace %s, which a new cluster does not have", ns)
	}
	sent := obj.Object["spec"]
	obj.SetNamespace(namespace)
	stored, err := memcacheds.In(namespace).Create(ctx, obj, metav1.CreateOptions{ // two samples may have one name
		FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll},
	})
	if r, refused := crd.Refused(err); refused {
		return finding.New("sample-refused", name+" accepted under strict validation", "refused: %s", r.Text)
	}
	if err != nil {
		return fmt.Errorf("create the Memcached of %s: %w", name, err)
	}
	if spec["size"] == nil && spec["containerPort"] == nil {
		return finding.New("no-size", name+" with a size or a port", "a spec with %d fields, neither of them", len(spec))
	}
	if lost := missing(sent, stored.Object["spec"]); len(lost) > 0 {
		return finding.New("field-lost", name+" kept as it is", "after it was stored, changed or gone: %s", strings.Join(lost, ", "))
	}
	return nil
}

// decode reads a sample as the API server's answers are read, in which 3 is a whole number.
func decode(sample generate.Manifest) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(sample.Object)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	return obj, obj.UnmarshalJSON(data)
}

// missing lists what stands in the spec that was sent and not in the stored one. What the API server adds does not count.
func missing(sent, stored any) []string {
	var lost []string
	for _, d := range generate.Compare(stored, sent) {
		if d.Want != "absent" {
			lost = append(lost, "spec."+d.Path)
		}
	}
	return lost
}
