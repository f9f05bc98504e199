package demo

import (
	"bytes"
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/operator-lab/labs/internal/trace"
)

func TestAStepIsOverWhenNothingIsMissing(t *testing.T) {
	m := trace.NewMemory(trace.Programs)
	sizes, seen := []int{3, 5}, 0
	for _, s := range recorded(t) {
		m.Take(s)
		if seen < len(sizes) && unsettled(m, sizes[seen]) == "" {
			seen++
		}
	}
	if seen != len(sizes) {
		t.Errorf("a recorded demo settled at %v, want at %v", sizes[:seen], sizes)
	}
	if unsettled(m, 3) == "" || !m.Removed("Deployment") || m.Removed("Node") {
		t.Error("after everything went, the memory says that it is there")
	}
}

func TestTheRefusalIsToldInTheAPIServersOwnWords(t *testing.T) {
	answering := func(answer error) client.Client {
		return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return answer
			},
		}).Build()
	}
	refused := apierrors.NewInvalid(kind.GroupKind(), name, nil)
	six := steps(nil)[3]
	if words, err := six.do(t.Context(), answering(refused)); err != nil || words != refused.Error() {
		t.Errorf("a refusal is told as %q, %v", words, err)
	}
	if _, err := six.do(t.Context(), answering(nil)); err == nil {
		t.Error("size 6 was accepted, and nobody noticed")
	}
	if _, err := six.do(t.Context(), answering(context.Canceled)); err == nil {
		t.Error("an interrupt passes for a refusal")
	}
}

func TestWhatIsNoTerminalGetsPlainText(t *testing.T) {
	var out bytes.Buffer
	p := printer{&out}
	for i, s := range steps(nil) {
		p.announce(i+1, s)
		p.wait(s.whileWaiting)
		p.explain(s)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("there are escape sequences in it")
	}
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimSpace(line)) > lineWidth {
			t.Errorf("a line of more than %d characters: %s", lineWidth, line)
		}
	}
}
