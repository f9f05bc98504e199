package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Column is one column of kubectl get for one object.
type Column struct {
	// Header is printed in capitals by kubectl.
	Header string
	// Type is the column's type as the definition names it: integer, string, date and so on.
	Type string
	// Wide means that the column shows with -o wide only.
	Wide bool
	// Cell is what the API server prints for the object. nil is nothing at all.
	Cell any
}

// Columns is a row of kubectl get, from left to right.
type Columns []Column

// Get finds the column with the given header, whatever its case; nil when there is none.
func (c Columns) Get(header string) *Column {
	for i := range c {
		if strings.EqualFold(c[i].Header, header) {
			return &c[i]
		}
	}
	return nil
}

// Headers is the first line of kubectl get -o wide.
func (c Columns) Headers() string {
	var headers []string
	for _, column := range c {
		headers = append(headers, strings.ToUpper(column.Header))
	}
	return strings.Join(headers, " ")
}

// Columns tells how kubectl get would print obj if it had this status; nil is the status that it has. Nothing is stored, so
// nobody who watches the object hears of it.
func (r *Resource) Columns(ctx context.Context, obj *unstructured.Unstructured, status map[string]any) (Columns, error) {
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
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	if len(table.Rows) != 1 {
		return nil, fmt.Errorf("read table: %d rows for one object", len(table.Rows))
	}
	var all Columns
	for i, column := range table.ColumnDefinitions {
		all = append(all, Column{Header: column.Name, Type: column.Type, Wide: column.Priority > 0, Cell: table.Rows[0].Cells[i]})
	}
	return all, nil
}
