package components

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// reportPeriod is how often a build that takes minutes says how far it is.
const reportPeriod = 10 * time.Second

// counter counts the lines that are written to it: go build -v writes one for each package that it compiles.
type counter struct{ lines atomic.Int64 }

func (c *counter) Write(data []byte) (int, error) {
	c.lines.Add(int64(bytes.Count(data, []byte("\n"))))
	return len(data), nil
}

// usual is how long the programs take to compile and link for the first time, on two cores and in the order of
// [modules]: what several need is compiled for the first of them. It was measured once, for containerd and the
// CNI plugins as a whole, and only has to be right in proportion: what has been built by then says how fast this
// machine is.
var usual = map[string]time.Duration{
	"kube-apiserver": 169 * time.Second, "kube-controller-manager": 57 * time.Second, "kubelet": 16 * time.Second,
	"kubeadm": 13 * time.Second, "kubectl": 12 * time.Second, "kube-proxy": 5 * time.Second, "kube-scheduler": 4 * time.Second,
	"etcd": 18 * time.Second, "coredns": 77 * time.Second, "kwok": 50 * time.Second, "runsc": 40 * time.Second,
	"containerd": 35 * time.Second, "containerd-shim-runc-v2": 5 * time.Second, "ctr": 5 * time.Second,
	"host-local": time.Second, "loopback": time.Second, "portmap": time.Second, "ptp": time.Second, "pause": time.Second,
}

// usually is how long programs take together.
func usually(names []string) (d time.Duration) {
	for _, name := range names {
		d += usual[name]
	}
	return d
}

// estimate knows how far a build of several modules is.
type estimate struct {
	begun time.Time
	all   time.Duration // what everything usually takes
	built time.Duration // what the modules that are built usually take
}

// telling is the share of a build after which the estimate uses the speed of this build.
const telling = 0.1

// left is how long it goes on, when of a module that usually takes as long as given a share is done.
func (e estimate) left(now time.Time, module time.Duration, share float64) time.Duration {
	done := e.built + time.Duration(min(share, 1)*float64(module))
	left := e.all - done
	if float64(done) > telling*float64(e.all) {
		left = time.Duration(float64(left) * float64(now.Sub(e.begun)) / float64(done))
	}
	return max(left, 0)
}

// inWords is a time to wait, as exact as an estimate can be.
func inWords(left time.Duration) string {
	if left <= time.Minute {
		return "less than a minute of compiling to go"
	}
	return fmt.Sprintf("about %d min of compiling to go", (left+time.Minute-1)/time.Minute)
}

// announce says what is built next, and how long all of it takes.
func (b *Builder) announce(names []string) {
	b.log(fmt.Sprintf("building %s: %s", strings.Join(names, " "), inWords(b.estimate.left(time.Now(), 0, 0))))
}

// follow says now and then how far the build of a module is, until stop is called.
func (b *Builder) follow(ctx context.Context, m module, names []string) (stop func()) {
	if b.Log == nil {
		return func() {}
	}
	ctx, stop = context.WithCancel(ctx)
	packages := make([]string, 0, len(names))
	for _, name := range names {
		packages = append(packages, m.packages[name])
	}
	// Those that were compiled before are among them, so that a build may end early. Without modules to ask, there is
	// no total.
	all, _ := b.goCommand(ctx, m, append([]string{"list", "-deps"}, packages...)...)
	total := len(strings.Fields(all))
	b.packages.lines.Store(0)
	e := b.estimate
	go func() {
		tick := time.NewTicker(reportPeriod)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				b.log(e.status(now, names, int(b.packages.lines.Load()), total))
			}
		}
	}()
	return stop
}

// status is one line about the build of a module of which a number of packages is compiled. A total of 0 is not known.
func (e estimate) status(now time.Time, names []string, compiled, total int) string {
	share, of := 0.0, ""
	if total > 0 {
		share, of = float64(compiled)/float64(total), fmt.Sprintf(" of %d", total)
	}
	return fmt.Sprintf("building %s: %d%s packages after %s, %s", strings.Join(names, " "), compiled, of,
		now.Sub(e.begun).Round(time.Second), inWords(e.left(now, usually(names), share)))
}
