package match

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// ExpectCreated makes a Memcached of a random size in a namespace, and waits for its Deployment.
func ExpectCreated(ctx context.Context, namespace string) env.Memcached {
	ginkgo.GinkgoHelper()
	m := env.NewMemcached(namespace)
	gomega.Expect(m.Create(ctx)).To(gomega.Succeed())
	ExpectDeployment(ctx, m)
	return m
}

// ExpectDeployment waits for the Deployment of a Memcached, and returns it.
func ExpectDeployment(ctx context.Context, m env.Memcached) *appsv1.Deployment {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, env.DeploymentOf(m)).Should(Exist())
	d, err := m.Deployment(ctx)
	gomega.Expect(err).To(gomega.Succeed())
	return d
}

// ExpectPods waits until all Pods of a Memcached are available, and no others are left.
func ExpectPods(ctx context.Context, m env.Memcached) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, env.RolloutOf(m)).WithTimeout(env.PodsTimeout).Should(HaveAvailablePods(m.Size))
}

const (
	// listenTimeout is how long memcached may take to listen after its container has started, and listenInterval how often it
	// is asked: each time is a request to the API server.
	listenTimeout, listenInterval = 5 * time.Second, 100 * time.Millisecond
	// lateTimeout is how long [ExpectSoon] waits for the operator, and stallTimeout how long for all: operators that poll look every
	// five seconds or so, and should hear that they do.
	lateTimeout, stallTimeout = 6 * time.Second, 30 * time.Second
)

// ExpectEachPod waits, for each Pod of a Memcached that is not being deleted, until ask returns nil, and returns these Pods:
// memcached in a Pod that is available may not listen yet.
func ExpectEachPod(ctx context.Context, m env.Memcached, ask func(context.Context, corev1.Pod) error) (asked []corev1.Pod) {
	ginkgo.GinkgoHelper()
	pods, err := m.Pods(ctx)
	gomega.Expect(err).To(gomega.Succeed())
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue // of the roll-out before
		}
		gomega.Eventually(ctx, ask).WithArguments(pod).WithTimeout(listenTimeout).WithPolling(listenInterval).Should(gomega.Succeed())
		asked = append(asked, pod)
	}
	return asked
}

// ExpectSoon does something, waits until want holds of what read reads, and returns how long that took. After six seconds the
// wait ends with late, if that is an error.
func ExpectSoon[T any](ctx context.Context, act func(context.Context) error, read func(context.Context) (T, error), want *Matcher, late func() error) (took time.Duration) {
	ginkgo.GinkgoHelper()
	gomega.Expect(act(ctx)).To(gomega.Succeed())
	began := time.Now()
	want.ByKubernetes(stallTimeout) // a manager that polls does nothing for a while, and is too slow
	gomega.Eventually(ctx, read).WithTimeout(stallTimeout).Should(want.StopIf(func() error {
		if err := late(); err != nil && time.Since(began) > lateTimeout {
			return finding.Of(err).TooLate()
		}
		return nil
	}))
	return time.Since(began)
}
