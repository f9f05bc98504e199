package crd

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refusal is the API server's judgement of an object: not a failure of the request, but its answer.
type Refusal struct {
	// Text is what it objects to, one line per field.
	Text string
	// Fields are the paths of the fields in question, such as spec.size. A refusal of unknown fields
	// has none.
	Fields []string
	// whole says that a rule above the kind objects to the object as a whole.
	whole bool
}

// Refused tells a refusal from every other error.
func Refused(err error) (Refusal, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) || !errors.As(err, &status) {
		return Refusal{}, false
	}
	r := Refusal{Text: status.Status().Message}
	if details := status.Status().Details; details != nil && apierrors.IsInvalid(err) {
		r.add(details.Causes)
	}
	return r, true
}

func (r *Refusal) add(causes []metav1.StatusCause) {
	var lines []string
	for _, cause := range causes {
		line := cause.Message
		r.whole = r.whole || cause.Field == "<nil>"
		if cause.Field != "" && cause.Field != "<nil>" {
			line = cause.Field + ": " + cause.Message
			r.Fields = append(r.Fields, cause.Field)
		}
		lines = append(lines, line)
	}
	if len(lines) > 0 {
		r.Text = strings.Join(lines, "\n")
	}
}

// About says whether the refusal concerns the field at path, something inside it, or one of the
// objects that it is in, as a rule over several fields does.
func (r Refusal) About(path string) bool {
	return r.whole || slices.ContainsFunc(r.Fields, func(field string) bool {
		return field == path || inside(field, path) || inside(path, field)
	})
}

func inside(path, outer string) bool {
	return strings.HasPrefix(path, outer+".") || strings.HasPrefix(path, outer+"[")
}
