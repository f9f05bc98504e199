package sharing_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/harness/probe/sharing"
)

// thing is a type with one of each, and with a copy function that a test chooses.
type thing struct {
	Name     string
	Numbers  []int
	Labels   map[string]string
	Nested   []inner
	Next     *thing
	Limit    resource.Quantity
	Since    metav1.Time
	Anything any
}

type inner struct {
	Flag  *bool
	Count int8
}

// copies is what a test makes of copying.
var copies func(in, out *thing)

func (in *thing) DeepCopyInto(out *thing) { copies(in, out) }
func (in *thing) DeepCopy() *thing        { out := new(thing); copies(in, out); return out }
func (in *thing) DeepCopyObject() any     { return in.DeepCopy() }

// right copies everything.
func right(in, out *thing) {
	*out = *in
	out.Numbers = slices.Clone(in.Numbers)
	out.Labels = maps.Clone(in.Labels)
	out.Nested = slices.Clone(in.Nested)
	for i, n := range in.Nested {
		if n.Flag != nil {
			out.Nested[i].Flag = new(*n.Flag)
		}
	}
	if in.Next != nil {
		out.Next = new(*in.Next)
	}
	out.Limit = in.Limit.DeepCopy()
}

func inspect(t *testing.T, copyInto func(in, out *thing)) sharing.Report {
	t.Helper()
	copies = copyInto
	return sharing.Inspect(new(thing))
}

func TestARightCopySharesAndLosesNothing(t *testing.T) {
	report := inspect(t, right)
	want := []sharing.Copy{{Method: "DeepCopy"}, {Method: "DeepCopyInto"}, {Method: "DeepCopyObject"}}
	if diff := cmp.Diff(want, report.Copies); diff != "" {
		t.Errorf("copies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Numbers", "Labels", "Nested", "Nested[].Flag", "Next"}, report.Filled); diff != "" {
		t.Errorf("filled (-want +got):\n%s", diff)
	}
}

func TestWrongCopies(t *testing.T) {
	for name, c := range map[string]struct {
		wrong func(in, out *thing)
		want  sharing.Copy
	}{
		"a plain assignment": {func(in, out *thing) { *out = *in },
			sharing.Copy{Shared: []string{"Numbers", "Labels", "Nested", "Next"}}},
		"a pointer inside an element": {func(in, out *thing) { right(in, out); out.Nested = slices.Clone(in.Nested) },
			sharing.Copy{Shared: []string{"Nested[].Flag"}}},
		"one map": {func(in, out *thing) { right(in, out); out.Labels = in.Labels },
			sharing.Copy{Shared: []string{"Labels"}}},
		"a forgotten string": {func(in, out *thing) { right(in, out); out.Name = "" },
			sharing.Copy{Lost: []string{"Name"}}},
		"a forgotten list": {func(in, out *thing) { right(in, out); out.Numbers = nil },
			sharing.Copy{Lost: []string{"Numbers"}}},
		"a forgotten time": {func(in, out *thing) { right(in, out); out.Since = metav1.Time{} },
			sharing.Copy{Lost: []string{"Since"}}},
		"a forgotten quantity": {func(in, out *thing) { right(in, out); out.Limit = resource.Quantity{} },
			sharing.Copy{Lost: []string{"Limit.i.value", "Limit.s", "Limit"}}},
		"a spoilt original": {func(in, out *thing) { right(in, out); in.Name = "spoilt"; out.Name = "spoilt" },
			sharing.Copy{Spoilt: []string{"Name"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, got := range inspect(t, c.wrong).Copies {
				c.want.Method = got.Method
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", got.Method, diff)
				}
			}
		})
	}
}

func TestDeepCopyIntoReplacesWhatWasThere(t *testing.T) {
	keeps := func(in, out *thing) {
		old := *out
		right(in, out)
		if old.Name != "" {
			out.Name = old.Name
		}
	}
	for _, got := range inspect(t, keeps).Copies {
		if lost := slices.Contains(got.Lost, "Name"); lost != (got.Method == "DeepCopyInto") {
			t.Errorf("%s lost %v", got.Method, got.Lost)
		}
	}
}

func TestPanics(t *testing.T) {
	for name, wrong := range map[string]func(in, out *thing){
		"always":             func(_, _ *thing) { panic("sorry") },
		"on an empty object": func(in, out *thing) { right(in, out); _ = in.Numbers[0] },
	} {
		t.Run(name, func(t *testing.T) {
			got := inspect(t, wrong).Copies[0]
			if !strings.Contains(got.Panic, "sharing_test.go") {
				t.Errorf("panic is %q, want it with its stack", got.Panic)
			}
		})
	}
}

type bare struct{ Since time.Time }

func TestMissingMethods(t *testing.T) {
	for _, got := range sharing.Inspect(new(bare)).Copies {
		if !strings.Contains(got.Missing, got.Method) {
			t.Errorf("%s: missing = %q", got.Method, got.Missing)
		}
	}
}
