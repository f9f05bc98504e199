package crd

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// create stores a Memcached in a namespace of this check.
func create(ctx context.Context, memcacheds *crd.Resource, size int64) (*unstructured.Unstructured, error) {
	obj := memcacheds.Object(env.Namespace(ctx), env.RandomName())
	obj.Object["spec"] = map[string]any{"size": size}
	stored, err := memcacheds.Create(ctx, obj, metav1.FieldValidationIgnore)
	if r, refused := crd.Refused(err); refused {
		return nil, finding.New("other", "a Memcached accepted", "refused: %s", r.Text)
	}
	return stored, err
}

// hasColumns asks whether kubectl get shows columns with these headers without -o wide.
func hasColumns(columns crd.Columns, headers ...string) error {
	for _, header := range headers {
		column := columns.Get(header)
		expected := fmt.Sprintf("a column %s in `kubectl get`", header)
		switch {
		case column == nil:
			return finding.New("missing-column", expected, "%s", columns.Headers())
		case column.Wide:
			return finding.New("hidden-column", expected, "only with -o wide")
		}
	}
	return nil
}

// showsSize asks whether the cell under Size is the size.
func showsSize(columns crd.Columns, size int64) error {
	if cell := columns.Get("Size").Cell; fmt.Sprint(cell) != fmt.Sprint(size) {
		return finding.New("wrong-value", fmt.Sprintf("Size to show %d for a Memcached with that `spec.size`", size), "%s", shownAs(cell))
	}
	return nil
}

// age is how the API server prints a date: as the time since, such as 5s or 3d4h.
var age = regexp.MustCompile(`^[0-9]+[smhdy]`)

// showsAge asks whether the cell under Age is an age.
func showsAge(columns crd.Columns) error {
	column := columns.Get("Age")
	if cell, _ := column.Cell.(string); column.Type != "date" || !age.MatchString(cell) {
		return finding.New("wrong-value", "Age to show how long ago the Memcached was created, as a column of type date",
			"a column of type %s that shows %s", column.Type, shownAs(column.Cell))
	}
	return nil
}

// showsAvailable asks whether the cell under Available is the status of that condition, whatever stands
// around it in the list. The API server only answers what it would show: an operator that watches the
// object has no part in this.
func showsAvailable(ctx context.Context, memcacheds *crd.Resource, obj *unstructured.Unstructured, statuses ...string) error {
	for i, status := range statuses {
		around := "True"
		if status == around {
			around = "False"
		}
		all := []any{condition("Aardvark", around), condition("Zebra", around)}
		all = slices.Insert(all, i%(len(all)+1), condition("Available", status))
		columns, err := memcacheds.Columns(ctx, obj, map[string]any{"conditions": all})
		if r, refused := crd.Refused(err); refused {
			return finding.New("other", "a status with the condition Available accepted", "refused: %s", r.Text)
		}
		if err != nil {
			return err
		}
		if column := columns.Get("Available"); column.Cell != status {
			cause := "wrong-value"
			if column.Cell == nil && column.Type != "string" {
				cause = "wrong-type"
			}
			return finding.New(cause, fmt.Sprintf("Available to show %s for a Memcached whose condition Available has that status", status),
				"a column of type %s that shows %s", column.Type, shownAs(column.Cell))
		}
	}
	return nil
}

// condition is a whole Kubernetes condition.
func condition(conditionType, status string) any {
	return map[string]any{
		"type": conditionType, "status": status, "reason": "Imagined", "message": "imagined by a check",
		"lastTransitionTime": "2026-01-02T03:04:05Z",
	}
}

func shownAs(cell any) string {
	if cell == nil || cell == "" {
		return "an empty cell"
	}
	return fmt.Sprint(cell)
}
