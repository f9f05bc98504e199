package course_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// changed are the files of Kubebuilder's scaffold that the course changes.
var changed = []string{
	".golangci.yml", "Makefile", "README.md", "go.mod", "go.sum", "hack/boilerplate.go.txt", "cmd/main.go", "api/v1alpha1/memcached_types.go",
	"internal/controller/memcached_controller.go", "internal/controller/memcached_controller_test.go", "config/manager/manager.yaml",
	"config/samples/cache_v1alpha1_memcached.yaml", "config/rbac/kustomization.yaml", "config/rbac/role.yaml",
}

func TestFirstStageIsScaffold(t *testing.T) {
	dir, operator, kubebuilder := t.TempDir(), filepath.Join(checkout(t), "operator"), newKubebuilder(t)
	run(t, dir, kubebuilder, "init", "--domain=example.com", "--repo=github.com/example/memcached-operator", "--project-name=memcached-operator",
		"--license-file="+filepath.Join(operator, "hack", "boilerplate.go.txt"), "--fetch-deps=false")
	run(t, dir, "cp", filepath.Join(operator, "go.mod"), filepath.Join(operator, "go.sum"), ".") // or the next downloads other versions
	run(t, dir, kubebuilder, "create", "api", "--group=cache", "--version=v1alpha1", "--kind=Memcached", "--resource", "--controller", "--make=false")
	scaffold, err := course.ReadTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	stage := render(t, coursetest.Load(t, checkout(t)), 0)
	for name, file := range scaffold {
		if !slices.Contains(changed, name) && !file.Equal(stage[name]) {
			t.Errorf("operator/%s is not what Kubebuilder scaffolds, which is:\n%s", name, file.Data)
		}
	}
}

// A learner goes on with the commands of Kubebuilder from any stage, and with the targets of the project's Makefile.
func TestStagesTakeKubebuilder(t *testing.T) {
	root, kubebuilder, c := checkout(t), newKubebuilder(t), coursetest.Load(t, checkout(t))
	lab, linter := filepath.Join(t.TempDir(), "lab"), filepath.Join(t.TempDir(), "golangci-lint")
	goBuild(t, "-o="+lab, "./labs/cmd/lab")
	goBuild(t, "-C="+filepath.Join(root, "scripts", "tools"), "-o="+linter, "./golangci-lint")
	for _, stage := range []int{0, 10, len(c.Labs)} {
		dir := coursetest.Stage(t, c, stage)
		for _, args := range []string{
			"create api --group cache --version v1alpha1 --kind Backup --resource --controller",
			"create webhook --group cache --version v1alpha1 --kind Backup --defaulting --programmatic-validation",
			"edit --plugins=helm/v2-alpha",
		} {
			if out := run(t, dir, kubebuilder, strings.Fields(args)...); strings.Contains(out, "WARN") {
				t.Errorf("stage %d: kubebuilder %s:\n%s", stage, args, out)
			}
		}
		run(t, root, lab, "--workspace="+dir, "envtest")
		run(t, dir, "make", "build", "test")
		run(t, dir, "make", "lint", "-o", "golangci-lint", "GOLANGCI_LINT="+linter) // -o: it need not be downloaded
	}
}

// newKubebuilder builds Kubebuilder in the version that scripts/tools pins.
func newKubebuilder(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "kubebuilder")
	goBuild(t, "-C="+filepath.Join(checkout(t), "scripts", "tools"), "-o="+program, "sigs.k8s.io/kubebuilder/v4")
	return program
}

// run returns what a program prints, which has to succeed.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "MAKEFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, out)
	}
	return string(out)
}
