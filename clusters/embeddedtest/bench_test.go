//go:build linux

package embeddedtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
)

// BenchmarkReady compares how long an embedded control plane takes until Pods run with the time that envtest and the
// same controllers, with their default settings, take until the same. Both are measured in turn:
//
//	go test ./clusters/embeddedtest -run none -bench Ready -benchtime 5x
//
// It reports medians of wall seconds, medians of the core-seconds of all processes, and the ratio of the former.
func BenchmarkReady(b *testing.B) {
	e, _ := newProvider(b)
	if err := e.Prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	var ours, theirs sample
	for b.Loop() {
		ours.measure(b, func() func() { return startEmbedded(b, e) })
		theirs.measure(b, func() func() { return startEnvtest(b, e) })
	}
	b.ReportMetric(ours.wall(), "s-embedded")
	b.ReportMetric(theirs.wall(), "s-envtest")
	b.ReportMetric(ours.wall()/theirs.wall(), "ratio")
	b.ReportMetric(ours.cores(), "cpu-s-embedded")
	b.ReportMetric(theirs.cores(), "cpu-s-envtest")
}

// sample is what was measured.
type sample struct{ walls, cpus []float64 }

func (s *sample) wall() float64  { return median(s.walls) }
func (s *sample) cores() float64 { return median(s.cpus) }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// measure takes the time of start, and what all processes used that stop, its result, ends.
func (s *sample) measure(b *testing.B, start func() (stop func())) {
	b.Helper()
	began := time.Now()
	stop := start()
	s.walls = append(s.walls, time.Since(began).Seconds())
	s.cpus = append(s.cpus, coreSeconds(os.Getpid()))
	b.Logf("%.2f s, %.2f core-s", s.walls[len(s.walls)-1], s.cpus[len(s.cpus)-1])
	stop()
}

// coreSeconds is what the living descendants of a process have used.
func coreSeconds(root int) float64 {
	children := map[int][]int{}
	used := map[int]float64{}
	processes, _ := procfs.AllProcs()
	for _, p := range processes {
		stat, err := p.Stat()
		if err != nil {
			continue // it has ended
		}
		children[stat.PPID] = append(children[stat.PPID], p.PID)
		used[p.PID] = stat.CPUTime()
	}
	total := 0.0
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		total += used[queue[0]]
		queue = append(queue, children[queue[0]]...)
	}
	return total
}

func startEmbedded(b *testing.B, e *embedded.Embedded) (stop func()) {
	b.Helper()
	const name = "lab-bench"
	if _, err := e.Create(b.Context(), name, clusters.Spec{}); err != nil {
		b.Fatal(err)
	}
	return func() {
		if err := e.Delete(b.Context(), name); err != nil {
			b.Fatal(err)
		}
	}
}

// startEnvtest starts what envtest starts, then the controllers as their defaults are.
func startEnvtest(b *testing.B, e *embedded.Embedded) (stop func()) {
	b.Helper()
	programs, err := e.Programs(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	env := &envtest.Environment{}
	server := env.ControlPlane.GetAPIServer()
	server.Path = programs["kube-apiserver"]
	env.ControlPlane.Etcd = &envtest.Etcd{Path: programs["etcd"]}
	config, err := env.Start()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		b.Fatal(err)
	}
	stages, err := filepath.Abs("../embedded/stages.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var ends []func()
	for program, args := range map[string][]string{
		"kube-controller-manager": {
			"--root-ca-file=" + filepath.Join(server.CertDir, "apiserver.crt"),
			"--service-account-private-key-file=" + filepath.Join(server.CertDir, "sa-signer.key"),
			// Without these, they ask for rights that have nothing to do with being ready.
			"--secure-port=0",
		},
		"kube-scheduler": {"--secure-port=0"},
		"kwok":           {"--manage-all-nodes=true", "--config=" + stages},
	} {
		ends = append(ends, run(b, dir, programs[program], append(args, "--kubeconfig="+kubeconfig)...))
	}
	awaitPods(b, config, kubeconfig)
	return func() {
		for _, end := range ends {
			end()
		}
		if err := env.Stop(); err != nil {
			b.Log(err)
		}
	}
}

func run(b *testing.B, dir, program string, args ...string) (end func()) {
	b.Helper()
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = []string{"HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as intended
	}
}

// awaitPods is what an embedded cluster waits for: a node, the default ServiceAccount, and a Pod that runs.
func awaitPods(b *testing.B, config *rest.Config, kubeconfig string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), embedded.ReadyTimeout)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(config)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	if _, err := clusters.WaitReady(ctx, kubeconfig, clusters.Readiness{Nodes: 1}, embedded.ReadyTimeout); err != nil {
		b.Fatal(err)
	}
	if err := embedded.AwaitPods(ctx, client); err != nil {
		b.Fatal(err)
	}
}
