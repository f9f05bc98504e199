package relations

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	connections = "connections" // the key of the contract
	// The bounds between which numbers of connections are drawn. memcached cannot have more than files that it may open.
	leastConnections, mostConnections = 100, 900
)

func randomConnections() int {
	return utilrand.IntnRange(leastConnections, mostConnections)
}

// newOptions makes a user's ConfigMap with options of memcached.
func newOptions(ctx context.Context, namespace, name string) *corev1.ConfigMap {
	GinkgoHelper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(write(ctx, c, randomConnections())).To(Succeed())
	return c
}

// write has the ConfigMap say a limit of connections, and makes it if it is not there.
func write(ctx context.Context, c *corev1.ConfigMap, limit any) error {
	base := c.DeepCopy()
	c.Data = map[string]string{connections: fmt.Sprint(limit)}
	err := env.Admin().Patch(ctx, c, client.MergeFrom(base))
	if apierrors.IsNotFound(err) {
		c.ResourceVersion = ""
		err = env.Admin().Create(ctx, c)
	}
	return err
}

func remove(ctx context.Context, c *corev1.ConfigMap) error {
	return env.Admin().Delete(ctx, c.DeepCopy())
}

func read(ctx context.Context, c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	now := &corev1.ConfigMap{}
	return now, env.Admin().Get(ctx, client.ObjectKeyFromObject(c), now)
}

// create makes a Memcached with one Pod that names a ConfigMap.
func create(ctx context.Context, options *corev1.ConfigMap) env.Memcached {
	GinkgoHelper()
	m := env.NewMemcached(options.Namespace, 1)
	Expect(m.CreateWith(ctx, map[string]any{"optionsFrom": map[string]any{"name": options.Name}})).To(Succeed())
	return m
}

// withOptions makes a Memcached with one Pod that names a ConfigMap, and waits until its container is told what that says.
func withOptions(ctx context.Context, options *corev1.ConfigMap) env.Memcached {
	GinkgoHelper()
	m := create(ctx, options)
	Expect(hasField(ctx, m, options.Name)).To(Succeed())
	Eventually(ctx, env.DeploymentOf(m)).WithTimeout(optionsTimeout).Should(tellLimit(options))
	return m
}

// hasField wants a definition whose Memcacheds can name a ConfigMap: the API server drops fields that it does not know.
func hasField(ctx context.Context, m env.Memcached, name string) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return err
	}
	if have, _, _ := unstructured.NestedString(obj.Object, "spec", "optionsFrom", "name"); have != name {
		return finding.New("no-field", "Memcacheds have a field spec.optionsFrom.name", "the API server has dropped it")
	}
	return nil
}

// tellLimit wants a Deployment whose container is told the ConfigMap's limit of connections.
func tellLimit(options *corev1.ConfigMap) *match.Matcher {
	return match.BeTold("limit of connections", options.Data[connections]).Because("not-in-template")
}

// haveLimit wants the settings of memcached to have the ConfigMap's limit of connections.
func haveLimit(options *corev1.ConfigMap) func(settings string) error {
	limit := options.Data[connections]
	return func(settings string) error {
		_, after, _ := strings.Cut(settings, "STAT maxconns ")
		if have, _, _ := strings.Cut(after, "\r"); have != limit {
			return finding.New("not-told", "memcached takes "+limit+" connections, as the ConfigMap says", "it takes %s", have)
		}
		return nil
	}
}

// stayAsItWas wants a Deployment that nobody has changed.
func stayAsItWas(before *appsv1.Deployment) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		if d.UID == before.UID && equality.Semantic.DeepEqual(d.Spec, before.Spec) {
			return nil
		}
		return finding.New("deployment-changed", "the Deployment "+before.Name+" stays as it was", "it has %d replicas, and is started with %q",
			*d.Spec.Replicas, env.CommandLine(d))
	}).KeepCause()
}

// beDegraded wants Degraded to be True, with a message that has a word in it, in upper or lower case.
func beDegraded(word string) gomegatypes.GomegaMatcher {
	message := func(obj *unstructured.Unstructured) string {
		return strings.ToLower(env.Condition(obj, "Degraded").Message)
	}
	return SatisfyAll(match.HaveCondition("Degraded", metav1.ConditionTrue).Because("not-degraded"),
		match.Because("not-named", fmt.Sprintf("%q in the message of Degraded", word), WithTransform(message, ContainSubstring(word))))
}
