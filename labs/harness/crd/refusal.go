package crd

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refusal is the API server's judgement of an object: not a failure of the request, but its answer.
type Refusal struct {
	// Text is what it objects to, one line per field.
	Text   string
	fields []string // "" is the object as a whole
}

// Refused tells a refusal from every other error.
func Refused(err error) (Refusal, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) || !errors.As(err, &status) {
		return Refusal{}, false
	}
	r := Refusal{Text: status.Status().Message}
	if details := status.Status().Details; details != nil && apierrors.IsInvalid(err) {
		var lines []string
		for _, cause := range details.Causes {
			field := strings.TrimPrefix(cause.Field, "<nil>")
			r.fields = append(r.fields, field)
			lines = append(lines, strings.TrimPrefix(field+": "+cause.Message, ": "))
		}
		if len(lines) > 0 {
			r.Text = strings.Join(lines, "\n")
		}
	}
	return r, true
}

// About says whether the refusal concerns the field at path, such as spec.size, something inside it, or one of the objects that
// it is in, as a rule over several fields does. A refusal of unknown fields names them in its text only.
func (r Refusal) About(path string) bool {
	return strings.Contains(r.Text, `unknown field "`+path+`"`) || slices.ContainsFunc(r.fields, func(field string) bool {
		return field == "" || field == path || inside(field, path) || inside(path, field)
	})
}

func inside(path, outer string) bool {
	return strings.HasPrefix(path, outer+".") || strings.HasPrefix(path, outer+"[")
}
