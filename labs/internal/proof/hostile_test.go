package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// buildingLimit is how long a verdict on code that cannot be built may take; most of it is the
	// compilation of our own suite on a busy machine.
	buildingLimit = 2 * time.Minute
	// exitedLimit is how long the checks may take on a program that ended by itself.
	exitedLimit = 40 * time.Second
	// silentLimit is how long they may take on one that runs and does nothing: its `-h` is given 5 s,
	// its first request 10 s.
	silentLimit = 60 * time.Second
	// interruptLimit is how long an interrupted run may clean up, its cluster included.
	interruptLimit = 60 * time.Second
)

// TestUnbuildableWorkspacesFail wants a verdict on the learner, and no cluster, when there is nothing to
// run. The provider is one that never gets a cluster ready, so that a verdict that waits for it is late.
func TestUnbuildableWorkspacesFail(t *testing.T) {
	c := load(t)
	for name, tc := range map[string]struct {
		edit func(t *testing.T, workspace string)
		says []string
	}{
		"does not compile": {
			edit: func(t *testing.T, dir string) {
				coursetest.Write(t, dir, "cmd/hostile.go", "package main\n\nvar size int = \"three\"\n")
			},
			says: []string{"cmd/hostile.go:3", "cannot use"},
		},
		"has no main package": {
			edit: func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "cmd")) },
			says: []string{"cmd"},
		},
		"has no go.mod": {
			edit: func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "go.mod")) },
			says: []string{"no go.mod", "make undo", "make reset-1"},
		},
		"is an empty folder": {
			edit: func(t *testing.T, dir string) {
				remove(t, dir)
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			},
			says: []string{"is empty", "rmdir"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			never := &neverReady{}
			manager, err := clusters.New(state, clusters.WithProvider(never))
			if err != nil {
				t.Fatal(err)
			}
			j := &verdict.Judge{
				Course: c, State: state, Cache: t.TempDir(), Workspace: coursetest.Stage(t, c, 4),
				Clusters: manager, NodeImage: nodeimage.Image{Ref: "none", Images: []string{memcached.Image}},
				Progress: func(line string) { t.Log(line) },
			}
			tc.edit(t, j.Workspace)
			ctx, cancel := context.WithTimeout(t.Context(), buildingLimit)
			defer cancel()
			results, err := j.Check(ctx, []int{4})
			if err != nil {
				t.Fatalf("no verdict within %s: %v", buildingLimit, err)
			}
			r := results[0]
			if r.Verdict != verdict.Fail || r.Build == nil {
				t.Fatalf("the verdict is %s, want fail for the build\n%s", r.Verdict, describe(r))
			}
			for _, want := range tc.says {
				if !strings.Contains(r.Build.Output, want) {
					t.Errorf("the verdict does not say %q:\n%s", want, r.Build.Output)
				}
			}
			if never.created != never.deleted {
				t.Errorf("%d clusters were begun, %d deleted", never.created, never.deleted)
			}
		})
	}
}

// neverReady is a provider whose clusters take as long as they are allowed to.
type neverReady struct {
	clusters.Provider
	created, deleted int
}

func (*neverReady) Identity() string { return "never ready" }

func (p *neverReady) Create(ctx context.Context, _ string, _ clusters.Spec) (*clusters.Cluster, error) {
	p.created++
	<-ctx.Done()
	return nil, ctx.Err()
}

func (p *neverReady) Delete(context.Context, string) error   { p.deleted++; return nil }
func (p *neverReady) List(context.Context) ([]string, error) { return nil, nil }

// hostile are programs that do not do what a manager does. Each is the solution of lab 4 with one more
// file in its main package.
var hostile = []struct {
	name  string
	body  string        // of an init function
	limit time.Duration // for the checks
	cause string
	says  []string // in what creates-deployment saw
}{
	{
		name: "loops in init", body: `for {}`,
		limit: silentLimit, cause: suite.CauseManagerSilent, says: []string{"has not sent one request"},
	},
	{
		name: "panics in init", body: `panic("the kettle is empty")`,
		limit: exitedLimit, cause: suite.CauseManagerExited, says: []string{"the kettle is empty", "hostile.go"},
	},
	{
		name: "panics at start", body: `if os.Getenv("KUBECONFIG") != "" { panic("the kettle is empty") }`,
		limit: exitedLimit, cause: suite.CauseManagerExited, says: []string{"exit status 2", "the kettle is empty", "hostile.go"},
	},
	{
		name: "exits silently", body: `os.Exit(0)`,
		limit: exitedLimit, cause: suite.CauseManagerExited, says: []string{"exit status 0", "it printed nothing"},
	},
	{
		name: "runs amok", body: amok,
		limit: silentLimit, cause: suite.CauseManagerSilent, says: []string{"has not sent one request"},
	},
}

// amok never becomes ready. It ignores SIGTERM, leaves children that do so in sessions of their own, one
// of them an orphan, writes wherever it can, and prints without end.
const amok = `
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	const child = "HOSTILE_CHILD"
	fork := func(kind string) {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), child+"="+kind)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = cmd.Start()
	}
	switch os.Getenv(child) {
	case "sleeper":
		time.Sleep(time.Hour)
	case "parent":
		fork("sleeper")
		os.Exit(0)
	}
	fork("sleeper")
	fork("parent")
	for _, dir := range []string{"/", "CHECKOUT", "CHECKOUT/labs", "WORKSPACE"} {
		_ = os.WriteFile(dir+"/MARKER", nil, 0o600)
	}
	for line := strings.Repeat("all work and no play ", 50); ; {
		os.Stdout.WriteString(line + "\n")
	}`

func TestHostileWorkspacesFail(t *testing.T) {
	c := load(t)
	for _, tc := range hostile {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHostileRun(t, c, tc.body)
			results, err := h.judge.Check(t.Context(), []int{4})
			if err != nil {
				t.Fatal(err)
			}
			r := results[0]
			if r.Verdict != verdict.Fail {
				t.Errorf("the verdict is %s, want fail\n%s", r.Verdict, describe(r))
			}
			h.requireClean()
			took := h.answered.Sub(h.checking)
			if took > tc.limit {
				t.Errorf("the checks took %s, want at most %s", took, tc.limit)
			}
			t.Logf("judged in %s", took.Round(time.Second))
			first := r.First()
			if first == nil || first.Cause != tc.cause {
				t.Fatalf("the first failure is %+v, want the cause %s", first, tc.cause)
			}
			for _, want := range tc.says {
				if !strings.Contains(first.Seen, want) {
					t.Errorf("the verdict does not say %q:\n%s", want, first.Seen)
				}
			}
		})
	}
}

// TestInterruptedHostileRunLeavesNothing interrupts a run in the middle of its checks.
func TestInterruptedHostileRunLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHostileRun(t, load(t), amok)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var interrupted time.Time
	go func() {
		defer interrupt()
		defer func() { interrupted = time.Now() }()
		for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			if scratch := h.scratch(); scratch != "" && len(processesOf(t, scratch)) > 2 {
				return
			}
		}
	}()
	results, err := h.judge.Check(ctx, []int{4})
	if !errors.Is(err, context.Canceled) || results != nil {
		t.Errorf("the interrupted run gives %v, %v, want context.Canceled alone", results, err)
	}
	if took := time.Since(interrupted); took > interruptLimit {
		t.Errorf("the clean-up took %s, want at most %s", took, interruptLimit)
	}
	if _, err := verdict.Read(h.judge.State, 4); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an interrupted run left a result: %v", err)
	}
	h.requireClean()
}

// TestTypesAreCompiledBeforeAProgramRuns has a manager, which runs as nobody, change the types in a workspace where it may:
// what root compiles afterwards would be its choice, such as an embedded file that has become a link to one of root's.
func TestTypesAreCompiledBeforeAProgramRuns(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // the program has the rights of whoever compiles
	}
	const spoilt = "api/v1alpha1/spoilt.go"
	h := newHostileRun(t, load(t), `_ = os.WriteFile("WORKSPACE/`+spoilt+`", []byte("package spoilt"), 0o666)`)
	types := filepath.Join(h.judge.Workspace, filepath.Dir(spoilt))
	for dir := types; dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	results, err := h.judge.Check(t.Context(), []int{2, 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(types, filepath.Base(spoilt))); err != nil {
		t.Fatalf("the program has changed nothing: %v", err)
	}
	for _, check := range results[0].Checks {
		if check.ID == "copy-shares-nothing" && check.State != verdict.Passed {
			t.Errorf("the types were compiled after the program had changed them\n%s", describe(results[0]))
		}
	}
}

// hostileRun is one run of a hostile program, and what it must not touch.
type hostileRun struct {
	t         *testing.T
	judge     *verdict.Judge
	marker    string
	workspace course.Tree // as it was
	checking  time.Time
	answered  time.Time
}

func newHostileRun(t *testing.T, c *course.Course, body string) *hostileRun {
	t.Helper()
	h := &hostileRun{t: t, judge: newJudge(t, c), marker: fmt.Sprintf("hostile-%d-%d", os.Getpid(), time.Now().UnixNano())}
	h.judge.Workspace = coursetest.Stage(t, c, 4)
	remove(t, h.judge.State) // results of an earlier run of this test
	h.add("", body)
	h.judge.Progress = func(line string) {
		t.Log(line)
		if line == "checking" {
			h.checking = time.Now()
		}
	}
	h.judge.Answer = func([]*verdict.Result, *clusters.Cluster) { h.answered = time.Now() }
	return h
}

// add puts code into the workspace: at the beginning of Reconcile, and into an init function of the main
// package.
func (h *hostileRun) add(reconcile, start string) {
	h.t.Helper()
	names := strings.NewReplacer("MARKER", h.marker, "CHECKOUT", h.judge.Course.Root, "WORKSPACE", h.judge.Workspace)
	start = names.Replace(start)
	coursetest.Write(h.t, h.judge.Workspace, "cmd/hostile.go", importing("main", start)+"\nfunc init() {\n"+start+"\n}\n")
	if reconcile != "" {
		// In a file of its own, so that the imports of the operator's stay as they are.
		coursetest.Write(h.t, h.judge.Workspace, "internal/controller/hostile.go", importing("controller", reconcile)+
			"\nfunc hostile(req ctrl.Request) {\n"+reconcile+"\n}\n")
		beginReconcile(h.t, h.judge.Workspace, "hostile(req)")
	}
	var err error
	if h.workspace, err = course.ReadTree(h.judge.Workspace); err != nil {
		h.t.Fatal(err)
	}
}

// beginReconcile has the workspace's Reconcile begin with a statement.
func beginReconcile(t *testing.T, workspace, statement string) {
	t.Helper()
	const name, begin = "internal/controller/memcached_controller.go", "(ctrl.Result, error) {\n"
	data, err := os.ReadFile(filepath.Join(workspace, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(data), begin)
	if !found {
		t.Fatalf("%s has no Reconcile", name)
	}
	coursetest.Write(t, workspace, name, before+begin+"\t"+statement+"\n"+after)
}

// importing begins a file with the imports that the body needs.
func importing(name, body string) string {
	text := "package " + name + "\n\nimport (\n"
	for _, pkg := range []string{"bytes", "os", "os/exec", "os/signal", "strings", "sync/atomic", "syscall", "time", "k8s.io/client-go/rest"} {
		if strings.Contains(body, filepath.Base(pkg)+".") {
			text += fmt.Sprintf("\t%q\n", pkg)
		}
	}
	if name != "main" || strings.Contains(body, "ctrl.") {
		text += "\tctrl \"sigs.k8s.io/controller-runtime\"\n"
	}
	return text + ")\n"
}

// config is the configuration that the run gave its suite, nil before it did.
func (h *hostileRun) config() *suite.Config {
	files, _ := filepath.Glob(filepath.Join(h.judge.State, "artifacts", "*", "run.json"))
	if len(files) != 1 {
		return nil
	}
	data, err := os.ReadFile(files[0])
	config := &suite.Config{}
	if err != nil || json.Unmarshal(data, config) != nil {
		return nil // half written
	}
	return config
}

func (h *hostileRun) scratch() string {
	if config := h.config(); config != nil {
		return config.Scratch
	}
	return ""
}

// requireClean wants the machine to be as it was before the run, but for its artifacts.
func (h *hostileRun) requireClean() {
	h.t.Helper()
	config := h.requireNothingLeft()
	h.requireNoCluster(filepath.Base(filepath.Dir(config.Kubeconfig)))
}

// requireNothingLeft is requireClean for a run whose cluster stays.
func (h *hostileRun) requireNothingLeft() *suite.Config {
	h.t.Helper()
	config := h.config()
	if config == nil {
		h.t.Fatal("the run left no configuration to look at")
	}
	if left := processesOf(h.t, config.Scratch); len(left) > 0 {
		h.t.Errorf("processes of the learner's program outlive the run:\n%s", strings.Join(left, "\n"))
	}
	if _, err := os.Stat(config.Scratch); !errors.Is(err, os.ErrNotExist) {
		h.t.Errorf("the scratch folder %s is left: %v", config.Scratch, err)
	}
	now, err := course.ReadTree(h.judge.Workspace)
	if err != nil {
		h.t.Fatal(err)
	}
	if changed := h.workspace.Diff(now); len(changed) > 0 && os.Geteuid() == 0 {
		h.t.Errorf("the workspace was changed: %v", changed)
	}
	for _, dir := range []string{"/", h.judge.Course.Root, filepath.Join(h.judge.Course.Root, "labs")} {
		file := filepath.Join(dir, h.marker)
		if _, err := os.Stat(file); err == nil {
			remove(h.t, file)
			if os.Geteuid() == 0 { // only root can give programs to somebody else
				h.t.Errorf("the program wrote to %s", dir)
			}
		}
	}
	return config
}

func (h *hostileRun) requireNoCluster(name string) {
	h.t.Helper()
	names, err := h.judge.Clusters.Provider().List(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if slices.Contains(names, name) {
		h.t.Errorf("cluster %s is left", name)
	}
	owners, err := h.judge.Clusters.List(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, owner := range owners {
		if owner.Name == name {
			h.t.Errorf("the record of cluster %s is left", name)
		}
	}
}

// processesOf lists the processes that run a program from a folder, or name it on their command line.
func processesOf(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, proc := range entries {
		program, _ := os.Readlink(filepath.Join(proc, "exe"))
		line, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		text := program + " " + string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		if strings.Contains(text, dir) {
			found = append(found, filepath.Base(proc)+": "+text)
		}
	}
	return found
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
