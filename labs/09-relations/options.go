package relations

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// The bounds between which numbers of connections are drawn. memcached cannot have more than files that it may open.
const leastConnections, mostConnections = 100, 900

// configMap is a user's, with options of memcached, as the user has written it last.
type configMap struct {
	*corev1.ConfigMap
	connections int
}

// newOptions makes one.
func newOptions(ctx context.Context, namespace, name string) *configMap {
	GinkgoHelper()
	c := missingOptions(namespace, name)
	Expect(c.create(ctx)).To(Succeed())
	return c
}

// missingOptions is one that is not made yet.
func missingOptions(namespace, name string) *configMap {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	return &configMap{&corev1.ConfigMap{ObjectMeta: meta}, leastConnections + env.Rand().IntN(mostConnections-leastConnections)}
}

// create makes it, also again.
func (c *configMap) create(ctx context.Context) error {
	c.ConfigMap = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
		Data:       map[string]string{"connections": strconv.Itoa(c.connections)},
	}
	return env.Admin().Create(ctx, c.ConfigMap)
}

func (c *configMap) remove(ctx context.Context) error { return env.Admin().Delete(ctx, c.ConfigMap) }

// set changes the number of connections.
func (c *configMap) set(ctx context.Context, connections int) error {
	c.connections = connections
	return c.correct(ctx)
}

// garble writes something that is no number, and correct the number that was there.
func (c *configMap) garble(ctx context.Context) error { return c.write(ctx, "many") }

func (c *configMap) correct(ctx context.Context) error {
	return c.write(ctx, strconv.Itoa(c.connections))
}

func (c *configMap) write(ctx context.Context, connections string) error {
	base := c.DeepCopy()
	c.Data = map[string]string{"connections": connections}
	return env.Admin().Patch(ctx, c.ConfigMap, client.MergeFrom(base))
}

// isAsItWas wants a ConfigMap that nobody but its user has changed.
func (c *configMap) isAsItWas(ctx context.Context) error {
	const expected = "the ConfigMap stays as its user made it"
	now := &corev1.ConfigMap{}
	switch err := env.Admin().Get(ctx, client.ObjectKeyFromObject(c), now); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("get ConfigMap %s: %w", c.Name, err)
	case err != nil || now.DeletionTimestamp != nil:
		return finding.New("users-data-deleted", expected, "it is gone")
	case len(now.OwnerReferences) > 0:
		return finding.New("owned", expected, "it has an owner: %s %s", now.OwnerReferences[0].Kind, now.OwnerReferences[0].Name)
	case now.ResourceVersion != c.ResourceVersion:
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

// tellLimit wants a Deployment whose container is told a limit of connections: in its command, its arguments or its environment.
func tellLimit(connections int) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		if !slices.Contains(strings.FieldsFunc(env.CommandLine(d), func(r rune) bool { return !unicode.IsDigit(r) }), strconv.Itoa(connections)) {
			return finding.New("not-told", fmt.Sprintf("the container is told %d connections, as the ConfigMap says", connections), "it is started with %q", env.CommandLine(d))
		}
		return nil
	})
}

// areTold wants memcached in the Pods of m, which are available, to have a limit of connections.
func areTold(ctx context.Context, m env.Memcached, connections string) {
	GinkgoHelper()
	match.ExpectEachPod(ctx, m, func(ctx context.Context, pod corev1.Pod) error {
		have, err := env.AskSetting(ctx, pod, m.Port, "maxconns")
		if err == nil && have != connections {
			err = finding.New("not-told", "memcached takes "+connections+" connections, as the ConfigMap says", "it takes %s", have)
		}
		return err
	})
}

// stayAsItWas wants the Deployment's replicas and template unchanged.
func stayAsItWas(before *appsv1.Deployment) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		expected := "the Deployment " + before.Name + " stays as it was"
		switch {
		case d.UID != before.UID:
			return finding.New("deployment-changed", expected, "it is another one")
		case *d.Spec.Replicas != *before.Spec.Replicas:
			return finding.New("deployment-changed", expected, "it has %d replicas, and had %d", *d.Spec.Replicas, *before.Spec.Replicas)
		case !equality.Semantic.DeepEqual(d.Spec.Template, before.Spec.Template):
			return finding.New("deployment-changed", expected, "its Pod template was changed: %s", env.CommandLine(d))
		}
		return nil
	}).KeepCause()
}

// staysAsItWas asks [stayAsItWas] once. A Deployment that is not there was changed, too.
func staysAsItWas(ctx context.Context, m env.Memcached, before *appsv1.Deployment) error {
	d, err := env.DeploymentOf(m)(ctx)
	if err != nil {
		return err
	}
	return stayAsItWas(before).Judge(d)
}

// beDegraded wants Degraded to be True, with a message that has a word in it, in upper or lower case.
func beDegraded(word string) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		expected := fmt.Sprintf("Degraded is True, with %q in its message", word)
		c, err := env.Condition(obj, "Degraded")
		switch {
		case err != nil:
			return err
		case c == nil:
			return finding.New("not-degraded", expected, "no condition Degraded")
		case c.Status != metav1.ConditionTrue:
			return finding.New("not-degraded", expected, "it is %s (%s: %s)", c.Status, c.Reason, c.Message)
		case !strings.Contains(strings.ToLower(c.Message), word):
			return finding.New("not-named", expected, "the message %q", c.Message)
		}
		return nil
	})
}

// isMended does what ends the trouble of a Memcached, and returns how long Degraded took to go.
func isMended(ctx context.Context, m env.Memcached, mend func(context.Context) error) time.Duration {
	GinkgoHelper()
	mended := match.HaveCondition("Degraded", metav1.ConditionFalse).Because("not-mended")
	return match.ExpectSoon(ctx, mend, env.MemcachedOf(m), mended, func() error {
		return finding.New("not-mended", "Degraded is False once the ConfigMap is there again", "it is not")
	})
}

// inTime wants that to have taken no longer than [mendTimeout].
func inTime(took time.Duration) error {
	if took <= mendTimeout {
		return nil
	}
	return finding.New("mended-late", fmt.Sprintf("Degraded is False within %s of the ConfigMap", mendTimeout), "after %s", took.Round(100*time.Millisecond)).TooLate()
}

// costNothing wants hardly any pass, and hardly any request, while act runs.
func costNothing(ctx context.Context, act func() error) error {
	since := env.RequestCount()
	made, err := env.Manager().PassesDuring(ctx, act)
	if err != nil {
		return err
	}
	const expected = "a ConfigMap that no Memcached names starts no passes"
	if made.All > fewPasses {
		return finding.New("passes-for-strangers", expected, "%d passes for %d edits", made.All, strangers)
	}
	if made.Again > 1 {
		return finding.New("passes-for-strangers", expected, "%d passes that asked for another one (RequeueAfter)", made.Again)
	}
	if sent := env.RequestCount() - since; sent > 2*fewPasses {
		return finding.New("passes-for-strangers", expected, "%d requests for %d edits", sent, strangers)
	}
	return nil
}
