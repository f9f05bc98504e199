// Package benchmark measures what somebody waits for: a cluster, and a verdict. It has benchmarks only; they need a
// container engine and a node image.
//
//	go test ./labs/internal/proof/benchmark -run none -bench . -benchtime 1x -count 5 -timeout 2h >new.txt
//	go run golang.org/x/perf/cmd/benchstat@latest old.txt new.txt
//
// The machine should have nothing else to do. Compare runs of the same day on the same machine only.
package benchmark

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	root   = "../../../.."
	engine = "docker"
	// idle is how long a new cluster is left alone before its memory is read.
	idle = 15 * time.Second
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else controller-runtime complains that nobody did
	os.Exit(m.Run())
}

// BenchmarkCluster is the creation of a cluster until it is ready: with kind, the embedded control plane, and envtest, which is
// an API server and etcd alone. core-s is the processor time of the whole machine meanwhile, and MiB the memory of the node or
// the processes after 15 idle seconds.
func BenchmarkCluster(b *testing.B) {
	image := nodeImage(b)
	b.Run("kind", func(b *testing.B) { createClusters(b, kind(b), clusters.Spec{Image: image.Ref}) })
	b.Run("embedded", func(b *testing.B) { createClusters(b, controlPlanes(b), clusters.Spec{}) })
	b.Run("envtest", startEnvtest)
}

func createClusters(b *testing.B, owned *clusters.Manager, spec clusters.Spec) {
	b.Helper()
	measure(b, func() (func() int64, func() error) {
		c, err := owned.Create(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		size := func() int64 { return descendants(b, os.Getpid()) }
		if c.RealPods {
			size = func() int64 { return memory(b, c.Name+"-control-plane") }
		}
		return size, func() error { return owned.Delete(b.Context(), c.Name) }
	})
}

// startEnvtest measures envtest with the programs of the embedded control plane.
func startEnvtest(b *testing.B) {
	programs, err := controlPlanes(b).Provider().(*embedded.Embedded).Programs(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	assets := b.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(programs[name], filepath.Join(assets, name)); err != nil {
			b.Fatal(err)
		}
	}
	measure(b, func() (func() int64, func() error) {
		env := &envtest.Environment{BinaryAssetsDirectory: assets}
		if _, err := env.Start(); err != nil {
			b.Fatal(err)
		}
		return func() int64 { return descendants(b, os.Getpid()) }, env.Stop
	})
}

// measure times start, and then asks it how large that is which it has started.
func measure(b *testing.B, start func() (size func() int64, stop func() error)) {
	b.Helper()
	var bytes int64
	var busy float64
	for b.Loop() {
		before := busySeconds(b)
		size, stop := start()
		b.StopTimer()
		busy += busySeconds(b) - before
		time.Sleep(idle) // what is measured is that nothing happens
		bytes += size()
		if err := stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(busy/float64(b.N), "core-s")
	b.ReportMetric(float64(bytes)/float64(b.N)/(1<<20), "MiB")
}

// busySeconds is the processor time of all programs of this machine.
func busySeconds(b *testing.B) float64 {
	b.Helper()
	files, err := procfs.NewDefaultFS()
	if err != nil {
		b.Fatal(err)
	}
	stat, err := files.Stat()
	if err != nil {
		b.Fatal(err)
	}
	cpu := stat.CPUTotal
	return cpu.User + cpu.Nice + cpu.System + cpu.IRQ + cpu.SoftIRQ
}

// descendants is the memory of all processes that a process has started, directly or not.
func descendants(b *testing.B, pid int) (bytes int64) {
	b.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil && stat.PPID == pid {
			bytes += int64(stat.ResidentMemory()) + descendants(b, stat.PID)
		}
	}
	return bytes
}

// memory is what a container takes in bytes.
func memory(b *testing.B, container string) int64 {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), engine, "stats", "--no-stream", "--format", "{{.MemUsage}}", container).Output()
	if err != nil {
		b.Fatal(err)
	}
	used, _, _ := strings.Cut(string(out), "B / ") // such as 379.2MiB / 23.5GiB
	q, err := resource.ParseQuantity(used)
	if err != nil {
		b.Fatalf("memory of %s: %q: %v", container, out, err)
	}
	return q.Value()
}

// BenchmarkVerdict is a check of the solution until its answer, for the labs with most to ask: with a cluster that is
// made for it (cold), with one that waits in a pool as for lab watch (warm), and on the embedded control plane.
func BenchmarkVerdict(b *testing.B) {
	c := coursetest.Load(b, root)
	tools, err := verdict.BuildTools(b.Context(), c.Root, filepath.Join(c.Root, ".lab", "proof"))
	if err != nil {
		b.Fatal(err)
	}
	image := nodeImage(b)
	for _, lab := range []int{4, 5, 7} {
		judge := verdict.Judge{
			Course: c, Cache: cache(b), Workspace: solution(b, c, lab), NodeImage: image, Tools: tools, Progress: func(string) {},
		}
		b.Run(fmt.Sprintf("lab=%d/kind/cold", lab), func(b *testing.B) { judgeSolution(b, judge, kind(b), lab, nil) })
		b.Run(fmt.Sprintf("lab=%d/kind/warm", lab), func(b *testing.B) {
			owned := kind(b)
			p := pool.Start(owned, pool.Options{
				Size: 1, Spec: memcached.Spec(image, owned, judge.Cache), Progress: func(line string) { b.Log(line) },
			})
			defer p.Close()
			judgeSolution(b, judge, owned, lab, p)
		})
		b.Run(fmt.Sprintf("lab=%d/embedded", lab), func(b *testing.B) { judgeSolution(b, judge, controlPlanes(b), lab, nil) })
	}
}

// judgeSolution measures until the answer: the cluster is deleted after it, and a cluster of the pool, if there is one,
// waits before.
func judgeSolution(b *testing.B, judge verdict.Judge, owned *clusters.Manager, lab int, p *pool.Pool) {
	b.Helper()
	judge.Clusters, judge.State = owned, b.TempDir()
	judge.Answer = func([]*verdict.Result, *clusters.Cluster) { b.StopTimer() }
	judge.Pool = p
	for b.Loop() {
		if p != nil {
			b.StopTimer()
			err := wait.PollUntilContextTimeout(b.Context(), time.Second/10, 5*time.Minute, true, func(context.Context) (bool, error) {
				return p.Waiting() > 0, nil
			})
			if err != nil {
				b.Fatalf("no cluster waits: %v", err)
			}
			b.StartTimer()
		}
		judge := judge // its own, because a check draws its seed
		results, err := judge.Check(b.Context(), []int{lab})
		if err != nil {
			b.Fatal(err)
		}
		if results[0].Verdict != verdict.Pass {
			b.Fatalf("the solution of lab %d is %s: %s; artifacts in %s", lab, results[0].Verdict,
				results[0].Environment.Finding, results[0].Artifacts)
		}
		b.StartTimer()
	}
}

// solution is a workspace with the solution of a lab, which was compiled once.
func solution(b *testing.B, c *course.Course, lab int) string {
	b.Helper()
	dir := coursetest.Stage(b, c, lab)
	env, err := process.BuildEnv(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	build := process.Tool(b.Context(), dir, b.TempDir(), env, "go", "build", "-buildvcs=false", process.LinkerFlags, "-o", os.DevNull, "./cmd")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func nodeImage(b *testing.B) nodeimage.Image {
	b.Helper()
	image, err := nodeimage.Resolve(b.Context(), engine, os.Getenv("NODE_IMAGE"))
	if err != nil {
		b.Fatal(err)
	}
	return image
}

func kind(b *testing.B) *clusters.Manager {
	b.Helper()
	m, err := clusters.New(b.TempDir(), clusters.WithEngine(engine))
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func controlPlanes(b *testing.B) *clusters.Manager {
	b.Helper()
	m, err := embedded.NewManager(b.TempDir(), "", nil)
	if err == nil {
		_, err = m.Provider().(*embedded.Embedded).Programs(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func cache(b *testing.B) string {
	b.Helper()
	dir, err := components.CacheDir()
	if err != nil {
		b.Fatal(err)
	}
	return dir
}
