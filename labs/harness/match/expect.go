package match

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/example/operator-lab/labs/harness/env"
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
