package probe_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/example/operator-lab/labs/harness/probe"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

// supervisor is built once for all tests.
var supervisor = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "supervisor-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "supervisor")
	return path, errors.Join(os.Chmod(dir, 0o755), exec.Command("go", "build", "-o", path, "../../cmd/supervisor").Run())
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := supervisor(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// types are the types of a module without dependencies, which compile with old versions of Go.
const types = `package v1alpha1

type Condition struct{ Type, Status string }

type Memcached struct {
	Status struct{ Conditions []Condition }
}

func (in *Memcached) DeepCopyInto(out *Memcached) {
	*out = *in
	out.Status.Conditions = append([]Condition(nil), in.Status.Conditions...)
}
func (in *Memcached) DeepCopy() *Memcached  { out := new(Memcached); in.DeepCopyInto(out); return out }
func (in *Memcached) DeepCopyObject() any   { return in.DeepCopy() }

type MemcachedList struct{ Items []Memcached }

func (in *MemcachedList) DeepCopyInto(out *MemcachedList) {
	*out = MemcachedList{}
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].DeepCopy())
	}
}
func (in *MemcachedList) DeepCopy() *MemcachedList { out := new(MemcachedList); in.DeepCopyInto(out); return out }
func (in *MemcachedList) DeepCopyObject() any      { return in.DeepCopy() }
`

const file = "api/v1alpha1/types.go"

// run probes a module with the types and these files, which may replace them.
func run(ctx context.Context, t *testing.T, files map[string]string) (probe.Result, error) {
	t.Helper()
	path, err := supervisor()
	if err != nil {
		t.Fatal(err)
	}
	workspace, scratch := t.TempDir(), t.TempDir()
	for dir := scratch; dir != os.TempDir(); dir = filepath.Dir(dir) { // another user runs the program
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	coursetest.Write(t, workspace, "go.mod", "module x\n\ngo 1.20\n")
	coursetest.Write(t, workspace, file, types)
	for name, text := range files {
		coursetest.Write(t, workspace, name, text)
	}
	env := append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	return probe.Probe{Workspace: workspace, Scratch: scratch, Supervisor: path, Env: env}.Run(ctx)
}

func TestCopies(t *testing.T) {
	const right = "append([]Condition(nil), in.Status.Conditions...)"
	edit := func(old, new string) map[string]string {
		return map[string]string{file: strings.Replace(types, old, new, 1)}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string // of a Memcached, or a MemcachedList
	}{
		"of go 1.20":          {nil, ""},
		"with another layout": {map[string]string{file: "package v1alpha1", "apis/cache/types.go": types}, ""},
		"with an api module": {map[string]string{
			"go.mod":     "module x\n\ngo 1.20\n\nrequire example.com/api v0.0.0\n\nreplace example.com/api => ./api\n",
			"api/go.mod": "module example.com/api\n\ngo 1.20\n",
		}, ""},
		"a shared slice":      {edit(right, "in.Status.Conditions"), `DeepCopy shares ["Items[0].Status.Conditions[0].Status"`},
		"a lost slice":        {edit(right, "nil"), `DeepCopy loses ["Items[0].Status.Conditions`},
		"old content":         {edit("*out = MemcachedList{}", ""), `DeepCopyInto loses ["Items`},
		"a panic":             {edit(right, "nil; panic(1)"), "DeepCopyObject panics 1\n"},
		"a panic on an empty": {edit(right, "in.Status.Conditions[:1:1]"), "DeepCopy panics runtime error: slice bounds"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := run(t.Context(), t, c.files)
			if err != nil || result.Finding != nil || len(result.Copies) != 2 {
				t.Fatalf("Run = %+v, %v", result, err)
			}
			var wrong []string
			for _, copied := range slices.Concat(result.Copies["Memcached"], result.Copies["MemcachedList"]) {
				switch m := copied.Method; {
				case copied.Panic+copied.Missing != "":
					wrong = append(wrong, m+" panics "+copied.Panic+copied.Missing)
				case len(copied.Shared) > 0:
					wrong = append(wrong, fmt.Sprintf("%s shares %q", m, copied.Shared))
				case len(copied.Lost) > 0:
					wrong = append(wrong, fmt.Sprintf("%s loses %q", m, copied.Lost))
				}
			}
			if all := strings.Join(wrong, "; "); (all == "") != (c.want == "") || !strings.Contains(all, c.want) {
				t.Errorf("%s; want %s", all, c.want)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	start := func(body string) map[string]string {
		return map[string]string{"api/v1alpha1/init.go": "package v1alpha1\n\nimport \"os\"\n\nvar _ = os.Exit\n\nfunc init() {\n\t" + body + "\n}\n"}
	}
	for name, c := range map[string]struct {
		files       map[string]string
		cause, seen string
	}{
		"a type error":    {map[string]string{file: types + "\nvar x int33\n"}, probe.CauseBuild, file + ":27:7: undefined: int33"},
		"no list":         {map[string]string{file: "package v1alpha1\n\ntype Memcached struct {\n}\n"}, probe.CauseBuild, "api/v1alpha1 is the place"},
		"an unnamed one":  {map[string]string{"go.mod": "go 1.20\n"}, probe.CauseBuild, "names no module"},
		"an exit":         {start("os.Exit(0)"), probe.CauseNoAnswer, "ended without an answer (exit status 0)"},
		"a panic":         {start("panic(\"oh dear\")"), probe.CauseNoAnswer, "oh dear"},
		"a wait for ever": {start("<-make(chan int)"), probe.CauseNoAnswer, "deadlock"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := run(t.Context(), t, c.files)
			if err != nil || result.Finding == nil {
				t.Fatalf("Run = %+v, %v", result, err)
			}
			findingtest.Require(t, result.Finding, c.cause, c.seen)
		})
	}
}

func TestInterruptIsNoFinding(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := run(ctx, t, nil); !errors.Is(err, context.Canceled) || result.Finding != nil {
		t.Errorf("Run = %+v, %v", result, err)
	}
}
