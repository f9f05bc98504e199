package generate_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

// binary is controller-gen at the version of our go.mod, built once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "controller-gen-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "controller-gen")
	out, err := exec.Command("go", "build", "-o", path, "sigs.k8s.io/controller-tools/cmd/controller-gen").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func run(t *testing.T, workspace string) generate.Results {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	made, err := generate.Generator{Binary: path, Workspace: workspace, Scratch: t.TempDir(), Env: env}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestRunAgreesWithGeneratedFiles(t *testing.T) {
	const role = "package internal\n\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get\n\nvar A int\n"
	workspace := workspacetest.New(t, workspacetest.Write("internal/a.go", role))
	made := run(t, workspace)
	if difference, err := generate.DiffCode(coursetest.Read(t, workspace, workspacetest.DeepCopy), made.DeepCopy[workspacetest.DeepCopy].Text); err != nil || difference != nil {
		t.Errorf("deep copies differ: %+v, %v", difference, err)
	}
	want, err := made.CRD.Manifests()
	if err != nil || len(want) != 1 {
		t.Fatalf("Manifests = %v, %v; want one", want, err)
	}
	findingtest.Require(t, generate.Stale(manifest(t, workspace), want[0], "x"), "", "")
	if roles, err := made.Role.Manifests(); err != nil || len(roles) != 1 {
		t.Errorf("roles = %v, %v; want one", roles, err)
	}
	workspacetest.Write("internal/a.go", strings.Replace(role, "get", `"`, 1))(t, workspace) // leaves the types alone
	if made := run(t, workspace); made.Role.Finding == nil || made.CRD.Finding != nil || !made.RoleMarked {
		t.Errorf("role: %v, types: %v", made.Role.Finding, made.CRD.Finding)
	}
}

// The API may be in a module of its own below the workspace.
func TestRunReadsLocalModules(t *testing.T) {
	workspace := workspacetest.New(t)
	mod := coursetest.Read(t, workspace, "go.mod")
	module := strings.Fields(mod)[1]
	for _, edit := range []workspacetest.Edit{
		workspacetest.Write("api/go.mod", strings.Replace(mod, "module "+module, "module "+module+"/api", 1)),
		workspacetest.Write("api/go.sum", coursetest.Read(t, workspace, "go.sum")),
		workspacetest.Write("go.mod", mod+"\nrequire "+module+"/api v0.0.0\n\nreplace "+module+"/api => ./api\n"),
	} {
		edit(t, workspace)
	}
	made := run(t, workspace)
	if definitions, err := made.CRD.Manifests(); err != nil || len(generate.Definitions(definitions, "Memcached")) != 1 {
		t.Errorf("Manifests = %v, %v", definitions, err)
	}
	if code := made.DeepCopy[workspacetest.DeepCopy]; code.Finding != nil || code.Text == "" {
		t.Errorf("DeepCopy = %+v", made.DeepCopy)
	}
}

func TestFindingsNamePlaces(t *testing.T) {
	for name, c := range map[string]struct {
		edit workspacetest.Edit
		want string
	}{
		"a syntax error":   {workspacetest.Replace(workspacetest.Types, "type MemcachedSpec struct {", "type MemcachedSpec strukt {"), "api/v1alpha1/memcached_types.go:11:"},
		"a marker's value": {workspacetest.Replace(workspacetest.Types, "Minimum=1", "Minimum=one"), "api/v1alpha1/memcached_types.go:"},
		"no module":        {workspacetest.Remove("go.mod"), "no go.mod"},
		"stale vendor":     {workspacetest.Write("vendor/modules.txt", "# example.com/old v1.0.0\n## explicit\n"), "inconsistent vendoring"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, workspacetest.New(t, c.edit)).CRD.Manifests()
			findingtest.Require(t, err, generate.CauseFailed, c.want)
			if strings.Contains(err.Error(), "Usage") || strings.Count(err.Error(), "\n") > 6 {
				t.Errorf("complaint is %q", err)
			}
		})
	}
}

func TestCodeOfNoTypes(t *testing.T) {
	_, err := generate.Results{}.Code()
	findingtest.Require(t, err, generate.CauseFailed, "object:generate")
}
