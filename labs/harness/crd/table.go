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

// acceptTable asks for what kubectl get prints.
const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

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

// Headers is the first line of kubectl get, or of kubectl get -o wide.
func (c Columns) Headers(wide bool) string {
	var headers []string
	for _, column := range c {
		if wide || !column.Wide {
			headers = append(headers, strings.ToUpper(column.Header))
		}
	}
	return strings.Join(headers, " ")
}

// Columns reads obj as kubectl get prints it.
func (r *Resource) Columns(ctx context.Context, obj *unstructured.Unstructured) (Columns, error) {
	client, err := r.rest()
	if err != nil {
		return nil, err
	}
	return columns(ctx, r.at(client.Get(), obj))
}

// ColumnsWith tells how kubectl get would print obj if it had this status. Nothing is stored, so
// nobody who watches the object hears of it.
func (r *Resource) ColumnsWith(ctx context.Context, obj *unstructured.Unstructured, status map[string]any) (Columns, error) {
	client, err := r.rest()
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, fmt.Errorf("write patch: %w", err)
	}
	request := r.at(client.Patch(types.MergePatchType), obj).Param("dryRun", metav1.DryRunAll).Body(patch)
	if r.HasStatus() {
		request = request.SubResource("status")
	}
	return columns(ctx, request)
}

func (r *Resource) at(request *rest.Request, obj *unstructured.Unstructured) *rest.Request {
	if r.namespaced() {
		request = request.Namespace(obj.GetNamespace())
	}
	return request.Resource(r.definition.Spec.Names.Plural).Name(obj.GetName())
}

func columns(ctx context.Context, request *rest.Request) (Columns, error) {
	data, err := request.SetHeader("Accept", acceptTable).Do(ctx).Raw()
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
		all = append(all, Column{
			Header: column.Name, Type: column.Type, Wide: column.Priority > 0, Cell: table.Rows[0].Cells[i],
		})
	}
	return all, nil
}

// rest is a client for requests that the dynamic one cannot make.
func (r *Resource) rest() (rest.Interface, error) {
	config := rest.CopyConfig(r.config)
	group := r.GroupVersion()
	config.GroupVersion, config.APIPath = &group, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}
