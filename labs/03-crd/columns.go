package crd

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// columns are those of a Memcached with a size, whose condition Available has a status and stands between others.
func columns(ctx context.Context, memcacheds *crd.Resource, size int64, available string) (*metav1.Table, error) {
	obj := memcacheds.Object(env.Namespace(ctx), env.RandomName())
	obj.Object["spec"] = map[string]any{"size": size}
	stored, err := memcacheds.Create(ctx, obj, metav1.FieldValidationIgnore)
	if err != nil {
		return nil, err
	}
	conditions := []any{condition("Aardvark", "True"), condition("Available", available), condition("Zebra", "True")}
	return memcacheds.Table(ctx, stored, map[string]any{"conditions": conditions})
}

func condition(conditionType, status string) any {
	return map[string]any{
		"type": conditionType, "status": status, "reason": "Imagined", "message": "imagined by a check",
		"lastTransitionTime": "2026-01-02T03:04:05Z",
	}
}

// shows wants a column without -o wide that shows a value. [age] stands for any age.
func shows(table *metav1.Table, header, want string) error {
	expected := fmt.Sprintf("a column %s in `kubectl get` that shows %s", header, want)
	var headers []string
	for _, c := range table.ColumnDefinitions {
		headers = append(headers, strings.ToUpper(c.Name))
	}
	i := slices.Index(headers, strings.ToUpper(header))
	if i < 0 {
		return finding.New("missing-column", expected, "%s", strings.Join(headers, " "))
	}
	column, value := table.ColumnDefinitions[i], table.Rows[0].Cells[i]
	switch {
	case column.Priority > 0:
		return finding.New("hidden-column", expected, "only with -o wide")
	case value == nil && header == "Available" && column.Type != "string":
		return finding.New("wrong-type", expected, "a column of type %s that shows nothing", column.Type)
	}
	cell := fmt.Sprint(cmp.Or(value, any("nothing")))
	if cell != want && (want != age || column.Type != "date" || !anAge.MatchString(cell)) {
		return finding.New("wrong-value", expected, "a column of type %s that shows %s", column.Type, cell)
	}
	return nil
}

const age = "its age"

var anAge = regexp.MustCompile(`^[0-9]+[smhdy]`)
