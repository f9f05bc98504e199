package verdict_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
)

var update = flag.Bool("update", false, "write testdata/golden from what is printed")

// hints gives one for everything, of the length of a real one.
func hints(check, cause string, layer int) string {
	return fmt.Sprintf("This is hint %d for `%s` of `%s`. It is a nudge and never the code; what it says stands in lab.yaml.", layer+1, cause, check)
}

const ns = "lab-creates-deployment-x7k2p"

// titles are those of lab 4, as far as reports need them.
var titles = map[string]string{
	"creates-deployment": "A Deployment appears for a Memcached",
	"pods-run":           "Its Pods run, as many as size says",
	"follows-size":       "The Deployment follows size, up and down",
	"follows-port":       "The Deployment follows containerPort",
	"follows-image":      "A new MEMCACHED_IMAGE reaches Deployments that already exist",
	"catches-up":         "What changed while the manager was stopped is caught up",
	"isolates-instances": "Several Memcacheds do not disturb each other",
	"answers-version":    "memcached answers on containerPort of every Pod",
	"deletion-quiet":     "After a deletion the operator does not go on failing",
	"nothing-to-do":      "A no-op reconcile writes nothing",
}

func check(id string, state verdict.State) verdict.Check {
	return verdict.Check{ID: id, Title: titles[id], Lab: 4, State: state}
}

func passed(ids ...string) (all []verdict.Check) {
	for _, id := range ids {
		all = append(all, check(id, verdict.Passed))
	}
	return all
}

func failed(id string, f *finding.Finding, evidence ...finding.Evidence) verdict.Check {
	c := check(id, verdict.Failed)
	c.Cause, c.Expected, c.Seen, c.Fields, c.Evidence = f.Cause, f.Expected, f.Seen, f.Fields, evidence
	return c
}

func blocked(by string, ids ...string) (all []verdict.Check) {
	for _, id := range ids {
		c := check(id, verdict.Blocked)
		c.BlockedBy = by
		all = append(all, c)
	}
	return all
}

func result(v verdict.Verdict, checks ...verdict.Check) *verdict.Result {
	return &verdict.Result{
		Lab: 4, Verdict: v, Seconds: 12.3, Seed: 42, Cluster: verdict.Cluster{Provider: "kind", Version: "v1.36.3"},
		Artifacts: "/lab/.lab/artifacts/20261121-224500-ABCD", Checks: checks,
	}
}

var (
	noDeployment = finding.New("no-deployment", "a Deployment "+ns+"/qwertzuiop for the Memcached of that name", "none")
	exited       = finding.New(suite.CauseManagerExited, "the manager goes on running",
		"it ended by itself (exit status 2) 812ms after its start; it panicked: assignment to entry in nil map, at internal/controller/memcached_controller.go:57")
	replicas = finding.New("not-scaled-up", "spec.replicas 4, as the Memcached's spec.size", "spec.replicas 2").
			With(finding.Field{Path: "spec.replicas", Want: "4", Have: "2"})
)

const (
	redTrace   = "0.00 s you created Memcached qwertzuiop of size 2 · 0.11 s your manager created the Deployment · 0.13 s you changed the Memcached: size 4 · then nothing from your manager for 3.1 s"
	greenTrace = "0.00 s you created Memcached qwertzuiop of size 2 · 0.09 s your manager created the Deployment · 0.10 s deployment-controller created the ReplicaSet · 0.43 s replicaset-controller created 2 Pods · 1.90 s Available=True"
)

// told adds what stands below a verdict.
func told(r *verdict.Result, trace string, advice ...string) *verdict.Result {
	r.Trace, r.Advice = trace, advice
	return r
}

// reports are the answers that a learner may see, one golden file each.
var reports = map[string]struct {
	result  *verdict.Result
	columns string
}{
	"pass": {result: result(verdict.Pass, passed("creates-deployment", "pods-run", "follows-size")...)},
	"pass-with-earlier-labs": {result: func() *verdict.Result {
		r := result(verdict.Pass, passed("creates-deployment", "pods-run", "follows-size")...)
		r.Lab = 7
		r.Checks[2].Lab = 7
		return r
	}()},
	"not-checked": {result: result(verdict.Pass, append(passed("creates-deployment", "follows-size"),
		check("pods-run", verdict.NotChecked), check("answers-version", verdict.NotChecked))...)},
	"fail-not-checked": {result: result(verdict.Fail, failed("follows-size", replicas),
		check("creates-deployment", verdict.Passed), check("pods-run", verdict.NotChecked))},
	"nothing-created": {result: result(verdict.Fail, append([]verdict.Check{failed("creates-deployment", noDeployment,
		finding.Evidence{Title: "The API server refused your manager", Lines: []string{"create deployments.apps (14 times): 403, the manager has no right to"}},
		finding.Evidence{Title: "Your manager's log", Lines: []string{
			"ERROR Reconciler error: get the configuration of the Deployment: there is none (14 times)",
			"ERROR Reconciler error: an error that is so long that nobody would read it to its end on a terminal, and that goes on all the same, with the name of the object, its fields one by one, and the reasons why each of them is not what the API server wants it to be",
		}},
		finding.Evidence{Title: "The events", Lines: []string{"Warning Failed on Memcached (3 times): no luck"}},
	)}, blocked("creates-deployment", "pods-run", "follows-size", "follows-port")...)...)},
	"several-failures": {result: result(verdict.Fail,
		check("creates-deployment", verdict.Passed), check("pods-run", verdict.Passed), check("isolates-instances", verdict.Passed),
		failed("follows-size", replicas), failed("follows-port", finding.New("port-ignored", "a Deployment that was changed, as spec.containerPort was", "the Deployment as it was created")),
		failed("nothing-to-do", finding.New("deployment-changed", "nothing changes, as nothing was asked for", "the Deployment changed:\nspec.replicas: want 1, have 2\nmetadata.annotations.time: want \"a\", have \"b\"").
			With(finding.Field{Path: "spec.replicas", Want: "1", Have: "2"}, finding.Field{Path: "metadata.annotations.time", Want: `"a"`, Have: `"b"`})),
		failed("catches-up", finding.New("not-caught-up", "spec.replicas 5", "spec.replicas 2")),
		failed("follows-image", finding.New("image-ignored", "image b", "image a")),
		failed("deletion-quiet", finding.New("keeps-failing", "fewer than 5 errors for one name within 2s", "9")),
	)},
	"panicked": {result: result(verdict.Fail,
		failed("creates-deployment", exited, finding.Evidence{Title: "Your manager panicked", Lines: []string{
			"at internal/controller/memcached_controller.go:57, called from internal/controller/memcached_controller.go:41",
		}}),
		failed("pods-run", exited), failed("follows-size", exited), failed("isolates-instances", exited),
		check("follows-port", verdict.Passed),
	)},
	"does-not-compile": {result: func() *verdict.Result {
		r := result(verdict.Fail, blocked("build", "creates-deployment", "pods-run", "follows-size")...)
		r.Cluster = verdict.Cluster{}
		r.Build = &verdict.Build{Output: strings.Join([]string{
			"# github.com/example/memcached-operator/internal/controller",
			"internal/controller/memcached_controller.go:57:2: undefined: deployment",
			"internal/controller/memcached_controller.go:61:28: not enough arguments in call to r.create",
			"\thave (context.Context)",
			"\twant (context.Context, *v1alpha1.Memcached)",
			"# github.com/example/memcached-operator/cmd",
			"cmd/main.go:12:2: \"os\" imported and not used",
			"a.go:1:1: 5", "a.go:2:1: 6", "a.go:3:1: 7", "a.go:4:1: 8", "a.go:5:1: 9", "a.go:6:1: 10", "a.go:7:1: 11",
		}, "\n")}
		return r
	}()},
	"no-module": {result: func() *verdict.Result {
		r := result(verdict.Fail, blocked("build", "creates-deployment")...)
		r.Build = &verdict.Build{Output: "there is no go.mod in /home/me/workspace, so it is no workspace. If lab made it, `make undo` or `make reset-1` brings one back; if not, name a new folder: `make lab-1 WORKSPACE=DIR`"}
		return r
	}()},
	"environment": {result: func() *verdict.Result {
		r := result(verdict.Environment, failed("creates-deployment", noDeployment))
		r.Environment = verdict.Finding{Finding: "the node lab-check-1234abcd-control-plane is not running, its container is exited (fix: make doctor)", Fix: "make doctor"}
		return r
	}()},
	"defect": {result: func() *verdict.Result {
		r := result(verdict.Environment)
		r.Environment = verdict.Finding{
			Finding: "the check creates-deployment panicked: runtime error: index out of range [1] with length 1",
			Fix:     "this is a defect of the lab: please report it with the artifacts",
		}
		return r
	}()},
	"regression": {result: func() *verdict.Result {
		broken := failed("creates-deployment", noDeployment)
		broken.Regression = true
		r := result(verdict.Fail, broken,
			verdict.Check{ID: "recreates-deployment", Title: "A deleted Deployment comes back", Lab: 5, State: verdict.Blocked, BlockedBy: "creates-deployment"},
			verdict.Check{ID: "garbage-collected", Title: "The Deployment goes with its Memcached", Lab: 5, State: verdict.Blocked, BlockedBy: "creates-deployment"})
		r.Lab = 5
		return r
	}()},
	"again-under-role": {result: func() *verdict.Result {
		forbidden := verdict.Check{
			ID: "works-under-role", Title: "The manager works under exactly this role", Lab: 7, State: verdict.Failed, Cause: "forbidden",
			Expected: "the API server allows everything that the manager asks for",
			Seen:     "it refused:\nupdate memcacheds.cache.example.com/status\npatch events.events.k8s.io",
		}
		r := result(verdict.Fail, failed("creates-deployment", finding.New("no-condition", "a condition of the type Available in the status", "no such condition")), forbidden)
		r.Lab = 7
		return r
	}()},
	"nothing-to-do": {result: result(verdict.Fail, failed("nothing-to-do",
		finding.New("deployment-changed", "nothing changes, as nothing was asked for", "the Deployment changed:\nspec.replicas: want 1, have 2").
			With(finding.Field{Path: "spec.replicas", Want: "1", Have: "2"})), check("creates-deployment", verdict.Passed))},
	"one-complaint": {result: func() *verdict.Result {
		const complaint = "the API server refused it: spec.size: Invalid value: \"object\": must be of type integer"
		return result(verdict.Fail,
			failed("creates-deployment", finding.New("other", "a Memcached of size 1 is taken", "%s", complaint)),
			failed("follows-size", finding.New("other", "a Memcached of size 5 is taken", "%s", complaint)),
			failed("pods-run", finding.New("other", "a Memcached of size 6 is refused", "it was taken")))
	}()},
	"fail-with-trace": {result: told(result(verdict.Fail, failed("follows-size", replicas), check("creates-deployment", verdict.Passed)), redTrace)},
	"pass-with-advice": {result: told(result(verdict.Pass, passed("creates-deployment", "pods-run")...), greenTrace,
		"Your role grants what no request of labs 4 to 7 needed: patch on deployments.apps. What is not granted cannot be misused: try without.",
		"8 writes of your operator changed nothing (2 of the status of memcacheds, 6 of deployments). The API server drops them; comparing before writing saves the requests.",
		"Three.", "A fourth is too much.")},
	"narrow": {columns: "44", result: result(verdict.Fail, append([]verdict.Check{failed("creates-deployment", noDeployment,
		finding.Evidence{Title: "Your manager's log", Lines: []string{"ERROR Reconciler error: get the configuration of the Deployment: there is none (14 times)"}},
	)}, blocked("creates-deployment", "pods-run", "follows-size")...)...)},
}

func TestReportsMatchGolden(t *testing.T) {
	for name, tc := range reports {
		t.Run(name, func(t *testing.T) {
			got := printed(t, tc.result, tc.columns)
			golden := filepath.Join("testdata", "golden", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; go test -update writes it", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the report changed (go test -update takes it over):\n%s", diff)
			}
		})
	}
}

// printed is the report on a terminal of the given width, 80 when it is "".
func printed(t *testing.T, r *verdict.Result, columns string) string {
	t.Helper()
	if columns == "" {
		columns = "80"
	}
	t.Setenv("COLUMNS", columns)
	var out bytes.Buffer
	verdict.Print(&out, r, &course.Lab{Number: r.Lab, Title: "Make the world match the spec"}, hints)
	return out.String()
}

func TestPrintOutcome(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	for want, o := range map[string]verdict.Outcome{
		"✗ A Deployment appears for a Memcached (lab 4 again: creates-deployment)\n    saw       none\n    hint      This is hint 1 for": {
			Check: failed("creates-deployment", noDeployment), Asked: 7},
		"✓ A Deployment appears for a Memcached (failed last time)\n": {Check: check("creates-deployment", verdict.Passed), Asked: 4, Fixed: true},
	} {
		var out bytes.Buffer
		if verdict.PrintOutcome(&out, o, hints); !strings.HasPrefix(out.String(), want) {
			t.Errorf("got %s, want %s", &out, want)
		}
	}
}

func TestReportFitsOneScreen(t *testing.T) {
	const long = "word and word and word and word and word and word and word and word and word and word and word and word and word and word "
	worst := finding.New("other", strings.Repeat(long, 10), "%s", strings.Repeat(long+"\n", 20))
	evidence := []finding.Evidence{
		{Title: "A", Lines: []string{strings.Repeat(long, 3), long, long}}, {Title: "B", Lines: []string{strings.Repeat(long, 3), long, long}},
		{Title: "C", Lines: []string{strings.Repeat(long, 3), long, long}}, {Title: "D", Lines: []string{strings.Repeat(long, 3), long, long}},
	}
	var checks []verdict.Check
	for id := range titles {
		checks = append(checks, failed(id, worst, evidence...))
	}
	for i := range 30 {
		c := check("follows-size", verdict.Passed)
		c.ID = fmt.Sprintf("a-check-with-quite-a-long-name-%d", i)
		checks = append(checks, c)
	}
	report := printed(t, told(result(verdict.Fail, checks...), strings.Repeat(greenTrace, 3)), "80")
	lines := strings.Split(strings.TrimSuffix(report, "\n"), "\n")
	if len(lines) > 40 {
		t.Errorf("%d lines:\n%s", len(lines), report)
	}
	for _, line := range lines {
		if len([]rune(line)) > 80 {
			t.Errorf("too wide: %s", line)
		}
	}
}

func TestReportNamesArtifactsFromHere(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	r := result(verdict.Fail, failed("creates-deployment", noDeployment))
	r.Artifacts = filepath.Join(here, ".lab", "artifacts", "run")
	if report := printed(t, r, ""); !strings.Contains(report, " .lab/artifacts/run") {
		t.Errorf("the path from here is missing:\n%s", report)
	}
}
