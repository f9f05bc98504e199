// Package reconciler holds the checks of lab 4: the Deployment of a Memcached follows its spec.
package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

var _ = Describe("Lab 4", env.Lab(4), func() {
	It("creates the Deployment of the spec", env.Check("creates-deployment"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(
			match.HaveReplicas(m.Size), runImage("wrong-image", env.Run().MemcachedImage), match.BeTold("port", m.Port)))
		bare := env.NewMemcached(m.Namespace)
		bare.Size, bare.Port = 0, 0
		Expect(bare.Create(ctx)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(bare)).Should(match.HaveReplicas(1).Because("default-ignored"))
	})

	It("has Pods that run", env.Check("pods-run"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx), 2) // a Pod is about a core-second
		match.ExpectPods(ctx, m)
		Consistently(ctx, env.Polled(m.Pods)).WithTimeout(stayUpPeriod).Should(match.Make(keepRunning))
		Expect(probesCanSucceed(match.ExpectDeployment(ctx, m), m.Port)).To(Succeed())
	})

	It("has memcached answer in each Pod", env.Check("answers-version"), func(ctx SpecContext) {
		everyPodAnswers(ctx, match.ExpectCreated(ctx, env.Namespace(ctx), 2)) // two are enough to judge "every Pod"
	})

	It("follows spec.size, up and down", env.Check("follows-size"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		before := match.ExpectDeployment(ctx, m)
		Expect(m.Relabel(ctx)).To(Succeed()) // a selector with these labels would have to change, and cannot
		for _, to := range []struct {
			size  int32
			cause string
		}{{5, "not-scaled"}, {1, "not-scaled-down"}, {3, "not-scaled"}} {
			Expect(m.SetSpec(ctx, "size", to.size)).To(Succeed())
			Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(match.BeSameAs(before), match.HaveReplicas(to.size).Because(to.cause)))
		}
	})

	It("follows spec.containerPort", env.Check("follows-port"), func(ctx SpecContext) {
		pods := int64(0)
		if env.Run().RealPods {
			pods = 100 // more than size, because Pods that are ending count, too
		}
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(pods)), 1)
		for _, port := range []int32{m.Port + 1, memcachedPort, m.Port} { // an operator may leave out the default port, and has to remove it
			before, old := match.ExpectDeployment(ctx, m), m.Port
			m.Port = port
			Expect(m.SetSpec(ctx, "containerPort", m.Port)).To(Succeed())
			Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(match.BeSameAs(before), haveAnotherPort(before, old, port)))
		}
		if env.Run().RealPods {
			everyPodAnswers(ctx, m)
		}
	})

	It("keeps Memcacheds apart", env.Check("isolates-instances"), func(ctx SpecContext) {
		one, other := env.Namespace(ctx, env.Quota(0)), env.Namespace(ctx, env.Quota(0))
		a, b, namesake := env.NewMemcached(one, 2), env.NewMemcached(one, 3), env.NewMemcached(other, 4)
		a.Name = longName()
		b.Name = a.Name[:len(a.Name)-1] + "0" // the same as a for an operator that shortens names
		namesake.Name = a.Name
		for _, m := range []env.Memcached{a, b, namesake} { // namesake last: it has no Deployment if the operator takes it for a
			Expect(m.Create(ctx)).To(Succeed())
			Eventually(ctx, env.DeploymentOf(m)).Should(match.Exist().Because("missing-deployment"))
		}
		Expect(selectsOwnPods(match.ExpectDeployment(ctx, a), match.ExpectDeployment(ctx, b))).To(Succeed())
		Expect(selectsOwnPods(match.ExpectDeployment(ctx, b), match.ExpectDeployment(ctx, a))).To(Succeed())
		a.Size = 5
		Expect(a.SetSpec(ctx, "size", a.Size)).To(Succeed())
		for _, m := range []env.Memcached{a, b, namesake} {
			Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(m.Size))
		}
	})

	It("is quiet after a deletion", env.Check("deletion-quiet"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		made, err := env.Manager().PassesDuring(ctx, func() error {
			if err := m.Delete(ctx, metav1.DeletePropagationBackground); err != nil {
				return err
			}
			Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
			return env.Sleep(ctx, failurePeriod)
		})
		Expect(err).To(Succeed())
		Expect(made.Failed + made.Again).To(match.Because("keeps-failing", fmt.Sprintf("at most %d passes that fail, or ask for another, in %s after a deletion", maxFailures, failurePeriod),
			BeNumerically("<=", maxFailures)))
	})

	It("catches up after it was stopped", env.Check("catches-up"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx, env.Quota(0))
		changed := match.ExpectCreated(ctx, namespace)
		Eventually(ctx, env.DeploymentOf(changed)).Should(match.HaveReplicas(changed.Size))
		late := env.NewMemcached(namespace)
		Expect(env.Manager().WhileStopped(ctx, func() error {
			changed.Size, changed.Port = 5, changed.Port+1
			return errors.Join(
				changed.SetSpec(ctx, "size", changed.Size), changed.SetSpec(ctx, "containerPort", changed.Port), late.Create(ctx))
		})).To(Succeed())
		Eventually(ctx, env.DeploymentOf(changed)).Should(match.HaveReplicas(5).Because("not-caught-up"))
		Eventually(ctx, env.DeploymentOf(changed)).Should(match.BeTold("port", changed.Port).Because("port-not-caught-up"))
		Eventually(ctx, env.DeploymentOf(late)).Should(match.Exist().Because("not-created"))
	})

	It("runs the image of MEMCACHED_IMAGE", env.Check("follows-image"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		Eventually(ctx, env.DeploymentOf(m)).Should(runImage("wrong-image", env.Run().MemcachedImage))
		before := match.ExpectDeployment(ctx, m)
		image := "operator-lab.local/memcached:" + env.RandomName()
		Expect(env.Manager().Restart(ctx, image)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(match.BeSameAs(before), runImage("image-ignored", image)))
	})

	It("writes nothing when there is nothing to do", env.Check("nothing-to-do", env.Long), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx), 1)
		available := HaveField("Status.AvailableReplicas", BeEquivalentTo(1))
		// What keeps Pods from becoming available is judged by pods-run, which begins later than this check.
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(startTimeout).Should(match.Because("too-few", "1 available Pod", available).ByKubernetes(startTimeout))
		match.ExpectStable(ctx, m)
		match.ExpectUnchanged(ctx, m, func() {
			Expect(env.Manager().Restart(ctx, env.Run().MemcachedImage)).To(Succeed())
			for range edits { // several, because the random order of a map can be the same twice
				Expect(m.Annotate(ctx)).To(Succeed())
				Expect(env.Sleep(ctx, passTime)).To(Succeed())
			}
		})
	})
})

// longName makes a random name of the greatest length that the contract card allows, that of a label's value, with a dot in it.
func longName() string {
	name := strings.Repeat(env.RandomName(), 7)
	return name[:31] + "." + name[:validation.LabelValueMaxLength-32]
}

// keepRunning wants Pods in which no container has ended by itself, even if it was started again. Without a readiness probe, which is
// optional, a container that ends at once counts as available for a moment.
func keepRunning(pods []corev1.Pod) error {
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated); ended != nil && pod.DeletionTimestamp == nil {
				c := pod.Spec.Containers[0]
				return finding.New("crashing", fmt.Sprintf("container %s of Pod %s goes on running", status.Name, pod.Name),
					"it ended with exit code %d; its command is %q, with the arguments %q", ended.ExitCode, c.Command, c.Args)
			}
		}
	}
	return nil
}

// container is the one container of the Pod template. The error is a finding if there is another number of them.
func container(d *appsv1.Deployment) (corev1.Container, error) {
	all := d.Spec.Template.Spec.Containers
	if len(all) != 1 {
		return corev1.Container{}, finding.New("containers", "exactly one container in the Pod template", "%d", len(all))
	}
	return all[0], nil
}

// runImage wants the container to run the image want.
func runImage(cause, want string) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		c, err := container(d)
		if err != nil {
			return err
		}
		if c.Image != want {
			return finding.New(cause, "image "+want+", as MEMCACHED_IMAGE says", "image %s", c.Image)
		}
		return nil
	})
}

// haveAnotherPort wants a changed Deployment whose container gets the new port, unless that is the default, and not the old one.
func haveAnotherPort(before *appsv1.Deployment, old, port int32) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		if d.Generation == before.Generation {
			return finding.New("port-ignored", "a Deployment that was changed, as spec.containerPort was", "the Deployment as it was before")
		}
		if match.BeTold("port", old).Judge(d) == nil {
			return finding.New("port-ignored", fmt.Sprintf("memcached is told nothing of the old port %d", old), "%s", env.CommandLine(d))
		}
		if port == memcachedPort {
			return nil
		}
		return match.BeTold("port", port).Because("port-ignored").Judge(d)
	})
}

// everyPodAnswers waits until all Pods are available, and wants memcached in each of them to tell its version.
func everyPodAnswers(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	match.ExpectPods(ctx, m)
	match.ExpectAnswers(ctx, m, "version", func(answer string) error {
		if !strings.HasPrefix(answer, "VERSION ") {
			return finding.New("other", "memcached tells its version", "%q", strings.TrimSpace(answer))
		}
		return nil
	})
}

// selectsOwnPods wants a Deployment whose selector does not select the Pods of another one.
func selectsOwnPods(d, other *appsv1.Deployment) error {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err == nil && selector.Matches(labels.Set(other.Spec.Template.Labels)) {
		return finding.New("shared-selector", "selectors that pick the Pods of their own Memcached only",
			"the selector %q of Deployment %s also picks the Pods of %s", selector, d.Name, other.Name)
	}
	return err
}

// probesCanSucceed wants probes that memcached can answer. A failure shows too late: by default, the kubelet ends a container half a
// minute after its liveness probe began to fail. Commands, other hosts and names of ports are not judged.
func probesCanSucceed(d *appsv1.Deployment, port int32) error {
	c, err := container(d)
	if err != nil {
		return err
	}
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		asks := ""
		switch {
		case p == nil:
		case p.HTTPGet != nil:
			asks = "an HTTP page"
		case p.GRPC != nil:
			asks = "a gRPC service"
		case p.TCPSocket != nil && p.TCPSocket.Host == "" && p.TCPSocket.Port.Type == intstr.Int && p.TCPSocket.Port.IntVal != port:
			asks = "TCP port " + p.TCPSocket.Port.String()
		}
		if asks != "" {
			return finding.New("wrong-probe",
				fmt.Sprintf("probes that memcached answers: it listens on port %d, and does not speak HTTP or gRPC", port), "a probe asks for %s", asks)
		}
	}
	return nil
}

const (
	// memcachedPort is memcached's default port.
	memcachedPort = 11211
	// edits is how many passes without work are started, and passTime how long each may take.
	edits, passTime = 3, 150 * time.Millisecond
	// startTimeout is how long Pods may take to become available, as in [match.ExpectPods].
	startTimeout = 60 * time.Second
	// stayUpPeriod is how long containers are watched after they became available. A container with a wrong command line ends
	// within 0.2 s, and the kubelet reports that a second later.
	stayUpPeriod = 2 * time.Second
	// maxFailures is how many passes of a manager may fail, or ask for another, in failurePeriod after a deletion. If each returns an
	// error, it makes nine: the first pause is 5 ms, and each pause is twice the one before.
	maxFailures, failurePeriod = 5, 1500 * time.Millisecond
)
