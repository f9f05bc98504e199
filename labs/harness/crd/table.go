package crd

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Table is what `kubectl get` would print for obj if it had this status; nil stands for its current status. The request is a dry run, so
// that no watch sees a change.
func (r *Resource) Table(ctx context.Context, obj *unstructured.Unstructured, status map[string]any) (*metav1.Table, error) {
	config, group := rest.CopyConfig(r.config), r.GroupVersion()
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &group, "/apis", scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	request := client.Get()
	if status != nil {
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return nil, fmt.Errorf("write patch: %w", err)
		}
		request = client.Patch(types.MergePatchType).Param("dryRun", metav1.DryRunAll).Body(patch)
		if r.HasStatus() {
			request = request.SubResource("status")
		}
	}
	request = request.NamespaceIfScoped(obj.GetNamespace(), r.namespaced()).Resource(r.definition.Spec.Names.Plural).Name(obj.GetName())
	data, err := request.SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("ask for a table: %w", err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(data, table); err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	if len(table.Rows) != 1 {
		return nil, fmt.Errorf("read table: %d rows for one object", len(table.Rows))
	}
	return table, nil
}
