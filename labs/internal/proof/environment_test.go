package proof

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// logsLimit is how much a run may keep of what a program prints, in bytes: the log of the manager itself,
// and what others quote from it.
const logsLimit = 16 << 20

// burdens are operators that work, or nearly, and are a burden to their machine. Each is the solution of
// lab 4 with something added: to its Reconcile, or to its start.
var burdens = []struct {
	name string
	// reconcile is put at the beginning of Reconcile, start into an init function of the main package.
	reconcile, start string
	want             verdict.Verdict
	cause            string // of the first failure
	says             string // in what it saw
	limit            time.Duration
}{
	{
		name: "floods the API server", start: flood,
		want: verdict.Pass, limit: 90 * time.Second,
	},
	{
		name: "panics in Reconcile", reconcile: `if req.Name != "" { panic("the kettle is empty") }`,
		want: verdict.Fail, says: "the kettle is empty", limit: 60 * time.Second,
	},
	{
		name: "panics beside Reconcile", reconcile: `go func() { panic("the kettle is empty") }()`,
		want: verdict.Fail, cause: suite.CauseManagerExited, says: "the kettle is empty", limit: 40 * time.Second,
	},
	{
		name: "ends in the middle", reconcile: `defer os.Exit(0)`,
		want: verdict.Fail, cause: suite.CauseManagerExited, says: "exit status 0", limit: 40 * time.Second,
	},
	{
		name: "ignores SIGTERM", start: `go func() { for { signal.Ignore(syscall.SIGTERM); time.Sleep(10 * time.Millisecond) } }()`,
		want: verdict.Pass, limit: 60 * time.Second,
	},
	{
		name: "has children", start: children("20"),
		want: verdict.Pass, limit: 60 * time.Second,
	},
	{
		name: "prints a gigabyte", start: `
	go func() {
		for line, n := strings.Repeat("all work and no play ", 50) + "\n", 0; n < 1<<30; n += len(line) {
			os.Stderr.WriteString(line)
		}
	}()`,
		want: verdict.Pass, limit: 60 * time.Second,
	},
	{
		name: "takes memory without end", start: hoard,
		want: verdict.Fail, cause: suite.CauseManagerExited, says: "out of memory", limit: 40 * time.Second,
	},
}

// flood sends as many requests as two cores can, reads and writes, beside what the operator does.
const flood = `
	go func() {
		config, err := ctrl.GetConfig()
		if err != nil {
			return
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return
		}
		var sent atomic.Int64
		for range 50 {
			go func() {
				for {
					answer, err := client.Get(config.Host + "/api/v1/namespaces")
					if err == nil {
						answer.Body.Close()
					}
					answer, err = client.Post(config.Host+"/apis/authentication.k8s.io/v1/selfsubjectreviews", "application/json",
						strings.NewReader("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}"))
					if err == nil {
						answer.Body.Close()
					}
					sent.Add(2)
				}
			}()
		}
		for range time.Tick(time.Second) {
			println("flood:", sent.Swap(0), "requests in a second")
		}
	}()`

// hoard takes memory before the manager serves, so no check can hold before it has taken too much. A hoard beside a
// working operator is a race: where the machine is busy, all checks hold before it has its gigabyte. The one request
// keeps it from being judged as silent. The checks then wait for their whole [env.EventuallyTimeout], because the manager
// has not asked for Memcacheds yet.
const hoard = `
	if os.Getenv("KUBECONFIG") != "" {
		config, err := ctrl.GetConfig()
		if err != nil {
			panic(err)
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			panic(err)
		}
		answer, err := client.Get(config.Host + "/version")
		if err != nil {
			panic(err)
		}
		answer.Body.Close()
		for all := [][]byte{}; ; {
			all = append(all, bytes.Repeat([]byte("x"), 1<<20))
		}
	}`

// children starts so many of them, in sessions of their own, each with a child of its own.
func children(n string) string {
	return `
	if os.Getenv("KUBECONFIG") != "" {
		for range ` + n + ` {
			cmd := exec.Command("sh", "-c", "sleep 1000; : " + os.Getenv("HOME"))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			_ = cmd.Start()
		}
	}`
}

// TestWhateverIsTheLearnersFaultIsNotEnvironment judges the burdens one after the other on one cluster,
// which has to bear them all.
func TestWhateverIsTheLearnersFaultIsNotEnvironment(t *testing.T) {
	c := load(t) // not in parallel: the burdens take what other tests need to pass
	j := newJudge(t, c)
	cluster := lasting(t, j)
	for _, tc := range burdens {
		t.Run(tc.name, func(t *testing.T) {
			h := newHostileRun(t, c, "")
			h.judge.Cluster, h.judge.WithoutReruns = cluster, true
			h.add(tc.reconcile, tc.start)
			results, err := h.judge.Check(t.Context(), []int{4})
			if err != nil {
				t.Fatal(err)
			}
			r := results[0]
			took := h.answered.Sub(h.checking)
			t.Logf("%s in %.1f s", r.Verdict, took.Seconds())
			if r.Verdict != tc.want {
				t.Errorf("the verdict is %s, want %s\n%s", r.Verdict, tc.want, describe(r))
			}
			if took > tc.limit {
				t.Errorf("the checks took %s, want at most %s", took, tc.limit)
			}
			if first := r.First(); tc.want == verdict.Fail && (first == nil || tc.cause != "" && first.Cause != tc.cause || !strings.Contains(told(first), tc.says)) {
				t.Errorf("the first failure is %+v, want the cause %q and that it says %q", first, tc.cause, tc.says)
			}
			h.requireNothingLeft()
			requireSmall(t, r.Artifacts)
			for _, line := range floodLines(t, r.Artifacts) {
				t.Log(line)
			}
		})
	}
}

// told is everything that a learner is told about a failed check.
func told(c *verdict.Check) string {
	text := c.Seen
	for _, e := range c.Evidence {
		text += "\n" + strings.Join(e.Lines, "\n")
	}
	return text
}

// requireSmall wants the artifacts of a run to be no burden either.
func requireSmall(t *testing.T, dir string) {
	t.Helper()
	size := int64(0)
	err := filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if size > logsLimit {
		t.Errorf("the artifacts take %d MB, want at most %d", size>>20, logsLimit>>20)
	}
}

// floodLines are what a flood says about itself, in each of its processes.
func floodLines(t *testing.T, dir string) (lines []string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, suite.ManagerLogs))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs of the manager: %v, %v", logs, err)
	}
	for _, log := range logs {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "flood: ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}
