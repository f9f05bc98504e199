package probe_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/harness/probe"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

func builder(t *testing.T, workspace string) probe.Builder {
	env := append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	return probe.Builder{Workspace: workspace, Scratch: t.TempDir(), Env: env, Limit: time.Hour}
}

// run builds and runs the probe in a workspace, as the harness does, without its supervisor.
func run(t *testing.T, workspace string) (probe.Reports, error) {
	t.Helper()
	program, err := builder(t, workspace).Build(t.Context())
	if err != nil {
		return nil, err
	}
	file := filepath.Join(t.TempDir(), "report.json")
	output, ended := exec.CommandContext(t.Context(), program, file).CombinedOutput()
	return probe.Read(file, ended, string(output))
}

const (
	conditionsCopy = "		*out = make([]v1.Condition, len(*in))\n"
	itemsCopy      = "		*out = make([]Memcached, len(*in))\n"
)

func TestCopiesOfARightModule(t *testing.T) {
	reports, err := run(t, workspacetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	for kind, conditions := range map[string]string{"Memcached": "status.conditions", "MemcachedList": "items[].status.conditions"} {
		report := reports[kind]
		if !slices.Contains(report.Filled, conditions) {
			t.Errorf("%s: %s was not filled, only %v", kind, conditions, report.Filled)
		}
		if len(report.Copies) != 3 {
			t.Errorf("%s was copied in %d ways, want 3", kind, len(report.Copies))
		}
		for _, c := range report.Copies {
			if len(c.Shared)+len(c.Lost)+len(c.Spoilt)+len(c.Panic)+len(c.Missing) > 0 {
				t.Errorf("%s: %+v", kind, c)
			}
		}
	}
}

func TestCopiesOfWrongModules(t *testing.T) {
	for name, c := range map[string]struct {
		edit       workspacetest.Edit
		kind, want string
	}{
		"stale":           {workspacetest.Replace(workspacetest.DeepCopy, conditionsCopy, "		*out = (*in)[:]\n		var _ v1.Condition\n"), "Memcached", "Status.Conditions"},
		"stale, in lists": {workspacetest.Replace(workspacetest.DeepCopy, conditionsCopy, "		*out = (*in)[:]\n		var _ v1.Condition\n"), "MemcachedList", "Items[].Status.Conditions"},
		"one list":        {workspacetest.Replace(workspacetest.DeepCopy, itemsCopy, "		*out = *in\n"), "MemcachedList", "Items"},
	} {
		t.Run(name, func(t *testing.T) {
			reports, err := run(t, workspacetest.New(t, c.edit))
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range reports[c.kind].Copies {
				if !slices.Equal(got.Shared, []string{c.want}) {
					t.Errorf("%s shares %v, want %s", got.Method, got.Shared, c.want)
				}
			}
		})
	}
}

func TestModulesThatDoNotBuild(t *testing.T) {
	for name, c := range map[string]struct {
		edit workspacetest.Edit
		want string
	}{
		"a type error":     {workspacetest.Replace(workspacetest.Types, "Size int32", "Size int33"), "api/v1alpha1/memcached_types.go:17:7: undefined: int33"},
		"a syntax error":   {workspacetest.Replace(workspacetest.Types, "Size int32", "Size: int32"), "api/v1alpha1/memcached_types.go:17:"},
		"no deep copies":   {workspacetest.Remove(workspacetest.DeepCopy), "missing method DeepCopyObject"},
		"no list":          {workspacetest.Replace(workspacetest.Types, "type MemcachedList ", "type Memcacheds "), "Memcached and MemcachedList"},
		"no types":         {workspacetest.Remove("api"), "api/v1alpha1 is the place"},
		"no module":        {workspacetest.Remove("go.mod"), "no go.mod"},
		"an unnamed one":   {workspacetest.Write("go.mod", "go 1.26\n"), "names no module"},
		"a missing module": {workspacetest.Replace(workspacetest.Types, "import (", "import (\n\t_ \"example.com/nowhere\""), "api/v1alpha1/memcached_types.go:7:2: no required module"},
	} {
		t.Run(name, func(t *testing.T) {
			workspace := workspacetest.New(t, c.edit)
			_, err := builder(t, workspace).Build(t.Context())
			f := finding.Of(err)
			if err == nil || f.Cause != probe.CauseBuild {
				t.Fatalf("Build = %v, want a finding with cause %s", err, probe.CauseBuild)
			}
			if text := f.Error(); !strings.Contains(text, c.want) || strings.Contains(text, workspace) {
				t.Errorf("Build says %q, want it to name %q", text, c.want)
			}
		})
	}
}

func TestProgramsThatGiveNoAnswer(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a kill":  {"p, _ := os.FindProcess(os.Getpid())\n\t_ = p.Kill()\n\tselect {}", "signal: killed"}, // as of a loop, by the harness
		"an exit": {"os.Exit(0)", "ended without an answer"},
		"a panic": {"panic(\"oh dear\")", "oh dear"},
	} {
		t.Run(name, func(t *testing.T) {
			init := "package v1alpha1\n\nimport \"os\"\n\nvar _ = os.Exit\n\nfunc init() {\n\t" + c.body + "\n}\n"
			_, err := run(t, workspacetest.New(t, workspacetest.Write("api/v1alpha1/init.go", init)))
			if f := finding.Of(err); err == nil || f.Cause != probe.CauseNoAnswer || !strings.Contains(f.Seen, c.want) {
				t.Errorf("run = %v, want a finding with cause %s that says %q", err, probe.CauseNoAnswer, c.want)
			}
		})
	}
}

func TestAnotherLayoutIsFound(t *testing.T) {
	workspace := workspacetest.New(t)
	if err := os.MkdirAll(filepath.Join(workspace, "apis"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(workspace, "api", "v1alpha1"), filepath.Join(workspace, "apis", "cache")); err != nil {
		t.Fatal(err)
	}
	if reports, err := run(t, workspace); err != nil || len(reports) != 2 {
		t.Errorf("run = %v, %v", reports, err)
	}
}

func TestTheWorkspaceIsOnlyRead(t *testing.T) {
	workspace := workspacetest.New(t)
	before := list(t, workspace)
	if _, err := run(t, workspace); err != nil {
		t.Fatal(err)
	}
	if after := list(t, workspace); !slices.Equal(before, after) {
		t.Errorf("files before %v, after %v", before, after)
	}
}

func TestAnInterruptIsNobodysMistake(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := builder(t, workspacetest.New(t)).Build(ctx)
	var f *finding.Finding
	if !errors.Is(err, context.Canceled) || errors.As(err, &f) {
		t.Errorf("Build after an interrupt = %v, want %v and no finding", err, context.Canceled)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		all = append(all, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
