package relations

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// The bounds between which numbers of connections are drawn. memcached cannot have more than files that it may open.
const leastConnections, mostConnections = 100, 900

// configMap is a user's, with options of memcached.
type configMap struct {
	namespace, name string
	connections     int
	made            *corev1.ConfigMap // as its user has written it last
}

// newOptions makes one.
func newOptions(ctx context.Context, namespace, name string) *configMap {
	GinkgoHelper()
	c := &configMap{namespace: namespace, name: name, connections: leastConnections + env.Rand().IntN(mostConnections-leastConnections)}
	Expect(c.create(ctx)).To(Succeed())
	return c
}

func (c *configMap) create(ctx context.Context) error {
	c.made = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.name},
		Data:       map[string]string{"connections": strconv.Itoa(c.connections)},
	}
	if err := env.Admin().Create(ctx, c.made); err != nil {
		return fmt.Errorf("create ConfigMap %s: %w", c.name, err)
	}
	return nil
}

// set changes the number of connections.
func (c *configMap) set(ctx context.Context, connections int) error {
	c.connections = connections
	return c.write(ctx, strconv.Itoa(connections))
}

func (c *configMap) write(ctx context.Context, connections string) error {
	base := c.made.DeepCopy()
	c.made.Data = map[string]string{"connections": connections}
	if err := env.Admin().Patch(ctx, c.made, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("change ConfigMap %s: %w", c.name, err)
	}
	return nil
}

// garble writes something that is no number, and correct the number that was there.
func (c *configMap) garble(ctx context.Context) error { return c.write(ctx, "many") }

func (c *configMap) correct(ctx context.Context) error { return c.set(ctx, c.connections) }

func (c *configMap) remove(ctx context.Context) error {
	if err := env.Admin().Delete(ctx, c.made); err != nil {
		return fmt.Errorf("delete ConfigMap %s: %w", c.name, err)
	}
	return nil
}

// isAsItWas wants a ConfigMap that nobody but its user has changed.
func (c *configMap) isAsItWas(ctx context.Context) error {
	const expected = "the ConfigMap stays as its user made it"
	now := &corev1.ConfigMap{}
	switch err := env.Admin().Get(ctx, client.ObjectKeyFromObject(c.made), now); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("get ConfigMap %s: %w", c.name, err)
	case err != nil || now.DeletionTimestamp != nil:
		return finding.New("users-data-deleted", expected, "it is gone")
	case len(now.OwnerReferences) > 0:
		return finding.New("owned", expected, "it has an owner: %s %s", now.OwnerReferences[0].Kind, now.OwnerReferences[0].Name)
	case now.ResourceVersion != c.made.ResourceVersion:
		return finding.New("configmap-changed", expected, "data %v, labels %v, annotations %v, finalizers %v", now.Data, now.Labels, now.Annotations, now.Finalizers)
	}
	return nil
}

// hasField wants a definition whose Memcacheds can name a ConfigMap: the API server drops fields that it does not know.
func hasField(ctx context.Context, m env.Memcached, name string) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return fmt.Errorf("get Memcached %s: %w", m, err)
	}
	if have, _, _ := unstructured.NestedString(obj.Object, "spec", "optionsFrom", "name"); have != name {
		return finding.New("no-field", "Memcacheds have a field spec.optionsFrom.name", "the API server has dropped it")
	}
	return nil
}

// haveAnotherTemplate wants another Pod template than before: how memcached is told its options is the operator's choice.
func haveAnotherTemplate(before *appsv1.Deployment) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		if equality.Semantic.DeepEqual(d.Spec.Template, before.Spec.Template) {
			return finding.New("not-in-template", "a Pod template that was changed, as the options were", "the same as before: %s", env.CommandLine(d))
		}
		return nil
	})
}

// areTold wants memcached in the Pods of m, which are available, to have a limit of connections.
func areTold(ctx context.Context, m env.Memcached, connections string) {
	GinkgoHelper()
	pods, err := m.Pods(ctx)
	Expect(err).To(Succeed())
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue // of the roll-out before
		}
		Eventually(ctx, func(ctx context.Context) error { // what is available may not listen yet
			have, err := env.AskSetting(ctx, pod, m.Port, "maxconns")
			if err == nil && have != connections {
				err = finding.New("not-told", "memcached takes "+connections+" connections, as the ConfigMap says", "it takes %s", have)
			}
			return err
		}).WithTimeout(listenTimeout).WithPolling(100 * time.Millisecond).Should(Succeed())
	}
}

// stayAsItWas wants the Deployment's replicas and template unchanged.
func stayAsItWas(before *appsv1.Deployment) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		expected := "the Deployment " + before.Name + " stays as it was"
		switch want, have := ptr.Deref(before.Spec.Replicas, 1), ptr.Deref(d.Spec.Replicas, 1); {
		case d.UID != before.UID:
			return finding.New("deployment-changed", expected, "it is another one")
		case have != want:
			return finding.New("deployment-changed", expected, "it has %d replicas, and had %d", have, want)
		case !equality.Semantic.DeepEqual(d.Spec.Template, before.Spec.Template):
			return finding.New("deployment-changed", expected, "its Pod template was changed: %s", env.CommandLine(d))
		}
		return nil
	}).Unexplained()
}

// staysAsItWas asks [stayAsItWas] once. A Deployment that is not there was changed, too.
func staysAsItWas(ctx context.Context, m env.Memcached, before *appsv1.Deployment) error {
	d, err := env.DeploymentOf(m)(ctx)
	if err != nil {
		return err
	}
	return stayAsItWas(before).Judge(d)
}

// beCollected wants the garbage collector to have deleted a Deployment.
func beCollected() *match.Matcher {
	return match.Make(func(d *appsv1.Deployment) error {
		if d.UID != "" {
			return finding.New("not-collected", "the Deployment goes with its Memcached", "it is still there")
		}
		return nil
	}).ByKubernetes(env.CollectTimeout).Unexplained()
}

// haveCondition wants a condition to have a status.
func haveCondition(kind string, status metav1.ConditionStatus, cause string) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		expected := fmt.Sprintf("%s is %s", kind, status)
		c, err := env.Condition(obj, kind)
		switch {
		case err != nil:
			return err
		case c == nil:
			return finding.New(cause, expected, "no such condition")
		case c.Status != status:
			return finding.New(cause, expected, "it is %s (%s: %s)", c.Status, c.Reason, c.Message)
		}
		return nil
	})
}

// beDegraded wants Degraded to be True, with a message that has a word in it, in upper or lower case.
func beDegraded(word string) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		expected := fmt.Sprintf("Degraded is True, with %q in its message", word)
		if err := haveCondition("Degraded", metav1.ConditionTrue, "not-degraded").Judge(obj); err != nil {
			return err
		}
		c, err := env.Condition(obj, "Degraded")
		if err == nil && !strings.Contains(strings.ToLower(c.Message), word) {
			err = finding.New("not-named", expected, "the message %q", c.Message)
		}
		return err
	})
}

// mended does what ends the trouble of a Memcached, and returns how long Degraded took to go.
func mended(ctx context.Context, m env.Memcached, mend func(context.Context) error) (took time.Duration, _ error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served, err := env.APIServerClock(ctx)
	if err != nil {
		return 0, err
	}
	if err := mend(ctx); err != nil {
		return 0, err
	}
	begun, said := served(), "no such condition"
	for served()-begun < lateTimeout {
		obj, err := env.MemcachedOf(m)(ctx)
		if err != nil {
			return 0, err
		}
		switch c, err := env.Condition(obj, "Degraded"); {
		case err != nil:
			return 0, err
		case c != nil && c.Status == metav1.ConditionFalse:
			return served() - begun, nil
		case c != nil:
			said = fmt.Sprintf("it is %s (%s: %s)", c.Status, c.Reason, c.Message)
		}
		if err := env.Sleep(ctx, env.GomegaPollInterval); err != nil {
			return 0, err
		}
	}
	return 0, finding.New("not-mended", "Degraded is False once the ConfigMap is there again", "%s", said)
}

func tooLate(took time.Duration) error {
	return finding.New("mended-late", fmt.Sprintf("Degraded is False within %s of the ConfigMap", mendTimeout), "after %s, and not for the first time", took.Round(100*time.Millisecond))
}

// costNothing wants hardly any pass, and hardly any request, while act runs.
func costNothing(ctx context.Context, act func() error) error {
	since := env.RequestCount()
	before, counts := env.Manager().Passes(ctx)
	if err := act(); err != nil {
		return err
	}
	after, _ := env.Manager().Passes(ctx)
	const expected = "a ConfigMap that no Memcached names starts no passes"
	if made := after.All - before.All; counts && made > fewPasses {
		return finding.New("passes-for-strangers", expected, "%d passes for %d edits", made, strangers)
	}
	if sent := env.RequestCount() - since; sent > 2*fewPasses {
		return finding.New("passes-for-strangers", expected, "%d requests for %d edits", sent, strangers)
	}
	return nil
}
