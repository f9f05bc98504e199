package match

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/example/operator-lab/labs/harness/env"
)

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
