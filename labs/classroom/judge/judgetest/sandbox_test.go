package judgetest

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
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/classroom/hosting"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// testSandboxes has the host judge the code of others: each in a sandbox of its own, one after the other.
func (h host) testSandboxes(t *testing.T, cache string) {
	config, err := clusters.RESTConfig(h.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		begun := time.Now()
		e.install(t, h, c)
		t.Logf("%s is installed after %.0f s", e.module, time.Since(begun).Seconds())
	}
	h.prepared = true
	tell := func(line string) { t.Log(line) }
	if err := hosting.Install(t.Context(), c, hosting.Options{}, tell); err != nil {
		t.Fatal(err)
	}
	h.askForLittle(t)
	t.Run("a cluster without enforced policies is refused", func(t *testing.T) { h.refusesOpenSandboxes(t, c) })
	stop := h.enforcePolicies(t)
	defer stop()
	t.Run("a cluster with enforced policies is not", func(t *testing.T) {
		if err := hosting.Doctor(t.Context(), c, h.judges(t), hosting.Options{}, tell); err != nil {
			t.Error(err)
		}
	})
	t.Run("a sandbox judges as at home", func(t *testing.T) { h.judgesAsAtHome(t, cache) })
	t.Run("a sandbox holds", h.holds)
	t.Run("twenty verdicts come in their order, two at a time", func(t *testing.T) { h.gradesMany(t, c) })
	t.Run("nothing is left of them", func(t *testing.T) { h.cleanUp(t, c) })
	t.Run("a judge that is lost costs no verdict", func(t *testing.T) {
		h.survives(t, "checking", hosting.DefaultNamespace, "app.kubernetes.io/component=judge", verdict.Pass)
	})
	t.Run("a sandbox that is lost costs no learner anything", func(t *testing.T) {
		h.survives(t, "checking", hosting.DefaultNamespace, "app.kubernetes.io/component=sandbox", verdict.Pass, verdict.Environment)
	})
	t.Run("a queue that is lost costs no verdict", func(t *testing.T) {
		h.survives(t, "the judge", "kueue-system", "control-plane=controller-manager", verdict.Pass)
	})
	t.Run("a node that is lost costs no learner anything", func(t *testing.T) { h.survivesItsNode(t, stop) })
	t.Run("nothing is left of an installation", func(t *testing.T) { h.uninstalls(t, c) })
}

// uninstalls removes all that was installed.
func (h host) uninstalls(t *testing.T, c client.Client) {
	tell := func(line string) { t.Log(line) }
	if err := hosting.Uninstall(t.Context(), c, hosting.Options{}, tell); err != nil {
		t.Fatal(err)
	}
	left := ""
	// The node was lost before this, and the queue takes two minutes until it is back.
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 6*time.Minute, true, func(ctx context.Context) (bool, error) {
		namespace, err := h.CoreV1().Namespaces().Get(ctx, hosting.DefaultNamespace, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			left = fmt.Sprintf("the namespace: %+v", namespace.Status.Conditions)
			return false, err
		}
		queue := &unstructured.Unstructured{}
		queue.SetGroupVersionKind(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "ClusterQueue"})
		left = "the queue"
		err = c.Get(ctx, client.ObjectKey{Name: "operator-lab"}, queue)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("something is left: %v: %s", err, left)
	}
}

// askForLittle has judges ask for what this machine has: two cores for everything.
func (h host) askForLittle(t *testing.T) {
	t.Helper()
	settings, err := h.CoreV1().ConfigMaps(hosting.DefaultNamespace).Get(t.Context(), "operator-lab", metav1.GetOptions{})
	if err == nil {
		settings.Data["cpu"] = "50m"
		_, err = h.CoreV1().ConfigMaps(hosting.DefaultNamespace).Update(t.Context(), settings, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h host) refusesOpenSandboxes(t *testing.T, c client.Client) {
	err := hosting.Doctor(t.Context(), c, h.judges(t), hosting.Options{}, func(line string) { t.Log(line) })
	problem, ok := errors.AsType[*clusters.Problem](err)
	if !ok || !strings.Contains(problem.What, "NetworkPolicies are not enforced") {
		t.Fatalf("Doctor() = %v", err)
	}
	if !strings.Contains(problem.What, ":10250") { // the kubelet of the sandbox's node
		t.Errorf("the node was not asked for: %s", problem.What)
	}
}

// enforcePolicies does on the node what a network plugin does with the policies of package hosting, which this one does not know:
// nobody but a judge connects to a sandbox, and a sandbox connects to nobody. It looks for new Pods until stop.
func (h host) enforcePolicies(t *testing.T) (stop func()) {
	t.Helper()
	const begin = "iptables -N OPERATOR-LAB && iptables -I INPUT 1 -j OPERATOR-LAB && iptables -I FORWARD 1 -j OPERATOR-LAB"
	if err := h.node(t.Context(), "", "sh", "-c", begin); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		last := ""
		for range time.Tick(200 * time.Millisecond) {
			rules, err := h.rules(ctx)
			if err == nil && rules != last {
				err = h.node(ctx, rules, "iptables-restore", "--noflush")
				last = rules
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// rules are those for the Pods that there are.
func (h host) rules(ctx context.Context) (string, error) {
	pods, err := h.CoreV1().Pods(hosting.DefaultNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	ips := map[string][]string{}
	for _, p := range pods.Items {
		if part := p.Labels["app.kubernetes.io/component"]; p.Status.PodIP != "" && p.Status.Phase == corev1.PodRunning {
			ips[part] = append(ips[part], p.Status.PodIP)
		}
	}
	lines := []string{"*filter", ":OPERATOR-LAB - [0:0]", "-A OPERATOR-LAB -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"}
	for _, sandbox := range slices.Sorted(slices.Values(ips["sandbox"])) {
		lines = append(lines, fmt.Sprintf("-A OPERATOR-LAB -s %s -j DROP", sandbox))
		for _, judge := range slices.Sorted(slices.Values(ips["judge"])) {
			lines = append(lines, fmt.Sprintf("-A OPERATOR-LAB -s %s -d %s -j RETURN", judge, sandbox))
		}
		lines = append(lines, fmt.Sprintf("-A OPERATOR-LAB -d %s -j DROP", sandbox))
	}
	return strings.Join(append(lines, "COMMIT", ""), "\n"), nil
}

// attacked is what a submission says that attacks, and the result. takes is what it takes without end after its attacks.
func (h host) attacked(t *testing.T, takes string) (said string, r *verdict.Result) {
	t.Helper()
	workspace := h.workspace(t, 4)
	cmd := filepath.Join(workspace, "cmd")
	node, err := h.CoreV1().Nodes().Get(t.Context(), h.name+"-control-plane", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edits := strings.NewReplacer("//go:build attack", "", "NODE", node.Status.Addresses[0].Address, "TAKES", takes)
	for from, to := range map[string]string{"attack/attack.go": "attack.go", "../../sandbox/sandboxtest/hostile/main.go": "main.go"} {
		source, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(cmd, to), []byte(edits.Replace(string(source))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	answer, err := h.judges(t).Ask(t.Context(), workspace, hosted.Question{Labs: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := answer.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range files {
		if strings.HasPrefix(filepath.Base(name), "manager") {
			said += string(file.Data)
		}
	}
	// Its own files are its own.
	own := strings.NewReplacer("did open /tmp/", "opened /tmp/", "did open /dev/termination-log", "opened /dev/termination-log")
	return own.Replace(said), answer.Results[0]
}

// holds has submissions attack from a sandbox. Each fails, and says what it has reached.
func (h host) holds(t *testing.T) {
	for _, takes := range []string{"leave", "eat", "watch", "fork", "print"} {
		t.Run(takes, func(t *testing.T) {
			said, result := h.attacked(t, takes)
			if result.Verdict != verdict.Fail {
				t.Errorf("the verdict is %s: %+v", result.Verdict, result.Environment)
			}
			var wanted []string // of those that take without end, the last words may be lost
			if takes == "leave" {
				wanted = []string{"greeted 9 containers", "attacked", "NoNewPrivs 1", "Gid 65533"}
			}
			lacks := func(words string) bool { return !strings.Contains(said, words) }
			if slices.ContainsFunc(wanted, lacks) || !lacks("filled /dev") || !lacks("did ") {
				t.Errorf("it said:\n%.3000s", said)
			}
		})
	}
}

// submissions are 20, every other one right.
func (h host) submissions(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for n := range 20 {
		tree, err := h.Render(3 + n%2)
		if err == nil {
			err = tree.WriteTo(filepath.Join(dir, fmt.Sprintf("learner-%02d", n)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// gradesMany asks for 20 verdicts at once. Two are made at a time, and the one that came first before all others.
func (h host) gradesMany(t *testing.T, c client.WithWatch) {
	all, _, err := grade.Find(h.submissions(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	admitted, waited := h.watchJobs(ctx, t, c), watchClaims(ctx, t, c)
	judges := h.judges(t)
	judges.Progress = func(string) {}
	begun := time.Now()
	grader := grade.Grader{
		Course: h.Course, Labs: []int{4}, Out: t.TempDir(), Parallel: hosting.Outstanding, Progress: func(string) {},
		Judge: func(ctx context.Context, state, workspace string, labs []int) ([]*verdict.Result, error) {
			return judges.Check(ctx, state, workspace, hosted.Question{Labs: labs})
		},
	}
	graded := 0
	err = grader.Run(ctx, all, func(g grade.Grade) {
		graded++
		want := verdict.Fail
		if strings.ContainsAny(g.Name[len(g.Name)-1:], "13579") {
			want = verdict.Pass
		}
		if got := g.Verdict(); got != want {
			t.Errorf("%s: %s, want %s: %+v", g.Name, got, want, g.Results[0].Environment)
		}
	})
	if err != nil || graded != 20 {
		t.Errorf("%d grades, %v", graded, err)
	}
	t.Logf("20 verdicts in %.0f s", time.Since(begun).Seconds())
	cancel()
	if waits := waited(); len(waits) > 0 {
		t.Logf("%d claims waited for a sandbox: %s in the middle, %s the second longest, %s the longest", len(waits), waits[len(waits)/2], waits[max(0, len(waits)-2)], waits[len(waits)-1])
	}
	order, most := admitted()
	if most != 2 {
		t.Errorf("%d were judged at a time, want 2", most)
	}
	if len(order) != 20 || !slices.IsSortedFunc(order, func(a, b time.Time) int { return a.Compare(b) }) {
		t.Errorf("%d were admitted, not in the order in which they came: %v", len(order), order)
	}
}

// watchJobs says, after ctx, when those Jobs came to the queue that it has let begin, in this order, and how many were judged at most
// at a time.
func (h host) watchJobs(ctx context.Context, t *testing.T, c client.Client) func() (order []time.Time, most int) {
	t.Helper()
	watcher, err := h.BatchV1().Jobs(hosting.DefaultNamespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var order []time.Time
	most, begun := 0, map[string]bool{}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watcher.ResultChan() {
			job, ok := event.Object.(*batchv1.Job)
			switch {
			case !ok:
			case event.Type == watch.Deleted || job.Status.CompletionTime != nil:
				delete(begun, job.Name)
			case !*job.Spec.Suspend && !begun[job.Name] && job.DeletionTimestamp == nil:
				begun[job.Name] = true
				order, most = append(order, queuedAt(ctx, t, c, job)), max(most, len(begun))
			}
		}
	})
	return func() ([]time.Time, int) {
		done.Wait()
		return order, most
	}
}

// queuedAt is when Kueue has learnt of a Job. Of those that are made within a second it learns in any order.
func queuedAt(ctx context.Context, t *testing.T, c client.Client, job *batchv1.Job) time.Time {
	workloads := &unstructured.UnstructuredList{}
	workloads.SetGroupVersionKind(kinds["Workload"])
	if err := c.List(ctx, workloads, client.InNamespace(job.Namespace)); err != nil {
		t.Error(err)
	}
	for _, w := range workloads.Items {
		if metav1.IsControlledBy(&w, job) {
			return w.GetCreationTimestamp().Time
		}
	}
	t.Errorf("Job %s has begun, and has no Workload", job.Name)
	return time.Time{}
}

// watchClaims says, after ctx, how long each claim waited for its sandbox, the shortest first.
func watchClaims(ctx context.Context, t *testing.T, c client.WithWatch) func() []time.Duration {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kinds["SandboxClaim"])
	watcher, err := c.Watch(ctx, list, client.InNamespace(hosting.DefaultNamespace))
	if err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration
	made, done := map[string]time.Time{}, sync.WaitGroup{}
	done.Go(func() {
		for event := range watcher.ResultChan() {
			claim, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			if _, known := made[claim.GetName()]; !known {
				made[claim.GetName()] = time.Now()
			}
			ready := hosted.Condition(claim, "Ready")
			if begun := made[claim.GetName()]; !begun.IsZero() && ready != nil && ready.Status == metav1.ConditionTrue {
				waits = append(waits, time.Since(begun).Round(time.Millisecond))
				made[claim.GetName()] = time.Time{}
			}
		}
	})
	return func() []time.Duration {
		done.Wait()
		slices.Sort(waits)
		return waits
	}
}

// cleanUp waits until nothing is left but the sandboxes that wait.
func (h host) cleanUp(t *testing.T, c client.Client) {
	left := ""
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		left = ""
		for kind, most := range map[string]int{"Job": 0, "Secret": 0, "Pod": 2, "SandboxClaim": 0, "Sandbox": 2, "Workload": 0} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kinds[kind])
			if err := c.List(ctx, list, client.InNamespace(hosting.DefaultNamespace)); err != nil {
				return false, err
			}
			if len(list.Items) > most {
				left += fmt.Sprintf(" %d of %s", len(list.Items), kind)
			}
		}
		return left == "", nil
	})
	if err != nil {
		t.Errorf("there are%s: %v", left, err)
	}
}

var kinds = map[string]schema.GroupVersionKind{
	"Job": {Group: "batch", Version: "v1", Kind: "JobList"}, "Secret": {Version: "v1", Kind: "SecretList"}, "Pod": {Version: "v1", Kind: "PodList"},
	"SandboxClaim": {Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Kind: "SandboxClaimList"},
	"Sandbox":      {Group: "agents.x-k8s.io", Version: "v1beta1", Kind: "SandboxList"},
	"Workload":     {Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "WorkloadList"},
}

// survives ends something while a right answer is judged. The verdict comes all the same, or it says that the cluster is at fault.
func (h host) survives(t *testing.T, during, namespace, selector string, want ...verdict.Verdict) {
	judges, ended := h.judges(t), false
	judges.Progress = func(line string) {
		t.Log(line)
		if !strings.Contains(line, during) || ended {
			return
		}
		ended = true
		err := h.CoreV1().Pods(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Error(err)
		}
	}
	answer, err := judges.Ask(t.Context(), h.workspace(t, 4), hosted.Question{Labs: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Results[0].Verdict; !ended || !slices.Contains(want, got) {
		t.Errorf("ended %v, the verdict is %s, want one of %v: %+v", ended, got, want, answer.Results[0].Environment)
	}
}

// survivesItsNode stops the node while a right answer is judged. The rules end with it: without them, who begins anew refuses to judge.
func (h host) survivesItsNode(t *testing.T, endRules func()) {
	judges := h.judges(t)
	var once sync.Once
	var restart sync.WaitGroup
	restarted := errors.New("nothing was judged")
	judges.Progress = func(line string) {
		t.Log(line)
		if line == "checking" {
			once.Do(func() {
				restart.Go(func() {
					endRules() // they need an API server
					restarted = exec.CommandContext(t.Context(), h.kind.Engine(), "restart", "--time", "0", h.name+"-control-plane").Run()
				})
			})
		}
	}
	answer, err := judges.Ask(t.Context(), h.workspace(t, 4), hosted.Question{Labs: []int{4}})
	restart.Wait()
	if restarted != nil {
		t.Fatalf("the node was not restarted: %v; %v", restarted, err)
	}
	back := wait.PollUntilContextTimeout(t.Context(), time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := h.CoreV1().Pods(hosting.DefaultNamespace).List(ctx, metav1.ListOptions{}) // who may do what comes last
		return err == nil, nil
	})
	if back != nil {
		t.Fatal("the node does not come back")
	}
	switch _, ok := errors.AsType[*clusters.Problem](err); {
	case ok:
		t.Log("the cluster is at fault:", err)
	case err != nil || answer.Results[0].Verdict == verdict.Fail:
		t.Errorf("%+v, %v", answer, err)
	}
}
