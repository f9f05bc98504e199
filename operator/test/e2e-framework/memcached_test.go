// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

func TestMemcached(t *testing.T) {
	c := newCache()
	testenv.Test(t, features.New("a Memcached").
		Setup(c.create).
		Assess("becomes available", c.becomesAvailable(2)).
		Assess("is scaled up", c.isScaled(3)).
		Assess("is scaled down", c.isScaled(1)).
		Assess("is scaled through its scale", c.isScaledThroughScale).
		Assess("has a headless Service", c.hasService).
		Assess("follows its ConfigMap", c.followsOptions).
		Teardown(c.delete).
		Feature())
}

func TestDrift(t *testing.T) {
	c := newCache()
	testenv.Test(t, features.New("a Deployment").
		Setup(c.create).
		Assess("has the size of its Memcached", c.hasReplicas(2)).
		Assess("gets it back after somebody scaled it", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			c.patch(ctx, t, cfg, c.deployment, func() { c.deployment.Spec.Replicas = new(int32(5)) })
			return c.hasReplicas(2)(ctx, t, cfg)
		}).
		Assess("comes back after somebody deleted it", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			before := c.deployment.UID
			if err := cfg.Client().Resources().Delete(ctx, c.deployment); err != nil {
				t.Fatal(err)
			}
			c.await(ctx, t, cfg, reactTimeout, c.deployment, "another Deployment", func() bool { return c.deployment.UID != before })
			return ctx
		}).
		Teardown(c.delete).
		Feature())
}

func TestManager(t *testing.T) {
	c := newCache()
	testenv.Test(t, features.New("the manager").
		Setup(c.create).
		Assess("shows its metrics to nobody without a token", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			services := kubernetes.NewForConfigOrDie(cfg.Client().RESTConfig()).CoreV1().Services(namespace)
			_, err := services.ProxyGet("https", manager+"-metrics-service", "8443", "metrics", nil).DoRaw(ctx)
			if !apierrors.IsUnauthorized(err) {
				t.Errorf("the API server, which sends no token, got: %v", err)
			}
			return ctx
		}).
		Assess("goes on after it was killed", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			c.hasReplicas(2)(ctx, t, cfg)
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "86f835c3.example.com", Namespace: namespace}}
			killed := &corev1.PodList{}
			if err := crClient(cfg).List(ctx, killed, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			if err := crClient(cfg).DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			// What the killed manager still does while its container stops proves nothing, and the tests below need one that leads.
			c.await(ctx, t, cfg, startTimeout, lease, "new leader after the lease of a killed manager has expired", func() bool {
				leader := lease.Spec.HolderIdentity // the name of its Pod and a random id, "" for none
				return leader != nil && *leader != "" &&
					!slices.ContainsFunc(killed.Items, func(p corev1.Pod) bool { return strings.HasPrefix(*leader, p.Name+"_") })
			})
			c.patch(ctx, t, cfg, c.memcached, func() { c.memcached.Spec.Size = 1 })
			c.hasReplicas(1)(ctx, t, cfg)
			return ctx
		}).
		Teardown(c.delete).
		Feature())
}

func TestDeletion(t *testing.T) {
	c := newCache()
	testenv.Test(t, features.New("a deleted Memcached").
		Setup(c.create).
		Assess("takes its Deployment with it", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			c.hasReplicas(2)(ctx, t, cfg)
			if err := cfg.Client().Resources().Delete(ctx, c.memcached); err != nil {
				t.Fatal(err)
			}
			gone := conditions.New(cfg.Client().Resources()).ResourceDeleted(c.deployment)
			if err := wait.For(gone, wait.WithContext(ctx), wait.WithTimeout(podsTimeout), wait.WithInterval(pollInterval)); err != nil {
				t.Errorf("the Deployment is still there: %v", err)
			}
			return ctx
		}).
		Teardown(c.delete).
		Feature())
}

// cache is a Memcached in a namespace of its own, and its Deployment.
type cache struct {
	memcached  *cachev1alpha1.Memcached
	deployment *appsv1.Deployment
}

func newCache() *cache {
	meta := metav1.ObjectMeta{Name: "cache", Namespace: envconf.RandomName("e2e", 12)}
	return &cache{
		memcached:  &cachev1alpha1.Memcached{ObjectMeta: meta, Spec: cachev1alpha1.MemcachedSpec{Size: 2, ContainerPort: 11211}},
		deployment: &appsv1.Deployment{ObjectMeta: meta},
	}
}

func (c *cache) create(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
	for _, obj := range []k8s.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.memcached.Namespace}}, c.memcached} {
		if err := cfg.Client().Resources().Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
	return ctx
}

func (c *cache) delete(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
	if err := cfg.Client().Resources().Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.memcached.Namespace}}); err != nil {
		t.Error(err)
	}
	return ctx
}

// hasReplicas waits for the Deployment to ask for so many replicas.
func (c *cache) hasReplicas(size int32) features.Func {
	return func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		c.await(ctx, t, cfg, reactTimeout, c.deployment, "a Deployment of the Memcached's size", func() bool {
			return c.deployment.Spec.Replicas != nil && *c.deployment.Spec.Replicas == size
		})
		return ctx
	}
}

// becomesAvailable waits for so many Pods, and for the status to tell.
func (c *cache) becomesAvailable(size int32) features.Func {
	return func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		c.await(ctx, t, cfg, podsTimeout, c.deployment, "all Pods available", func() bool {
			return c.deployment.Status.AvailableReplicas == size && c.deployment.Status.Replicas == size
		})
		c.await(ctx, t, cfg, reactTimeout, c.memcached, "the condition Available", func() bool {
			condition := apimeta.FindStatusCondition(c.memcached.Status.Conditions, "Available")
			return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == c.memcached.Generation
		})
		return ctx
	}
}

// isScaled asks for another size, and waits for it.
func (c *cache) isScaled(size int32) features.Func {
	return func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		c.patch(ctx, t, cfg, c.memcached, func() { c.memcached.Spec.Size = size })
		c.hasReplicas(size)(ctx, t, cfg)
		return c.becomesAvailable(size)(ctx, t, cfg)
	}
}

func (c *cache) isScaledThroughScale(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
	if err := crClient(cfg).SubResource("scale").Update(ctx, c.memcached, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	return c.becomesAvailable(2)(ctx, t, cfg)
}

func (c *cache) hasService(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: c.memcached.Namespace, Name: c.memcached.Name}}
	c.await(ctx, t, cfg, reactTimeout, service, "headless Service on the port", func() bool {
		return service.Spec.ClusterIP == corev1.ClusterIPNone && service.Spec.Ports[0].Port == 11211
	})
	return ctx
}

func (c *cache) followsOptions(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
	options := &corev1.ConfigMap{Data: map[string]string{"connections": "300"}}
	options.Namespace, options.Name = c.memcached.Namespace, "options"
	named := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"optionsFrom": {"name": "options"}}}`))
	if err := errors.Join(crClient(cfg).Create(ctx, options), crClient(cfg).Patch(ctx, c.memcached, named)); err != nil {
		t.Fatal(err)
	}
	c.await(ctx, t, cfg, reactTimeout, c.deployment, "limit of connections", func() bool {
		return slices.Contains(c.deployment.Spec.Template.Spec.Containers[0].Args, "--conn-limit=300")
	})
	return ctx
}

func crClient(cfg *envconf.Config) client.Client {
	return cfg.Client().Resources().GetControllerRuntimeClient()
}

// patch changes an object as it was read last, and sends the difference.
func (c *cache) patch(ctx context.Context, t *testing.T, cfg *envconf.Config, obj k8s.Object, change func()) {
	t.Helper()
	before := obj.DeepCopyObject().(client.Object)
	change()
	if err := crClient(cfg).Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// await reads obj again and again, until ok.
func (c *cache) await(ctx context.Context, t *testing.T, cfg *envconf.Config, timeout time.Duration, obj k8s.Object, what string, ok func() bool) {
	t.Helper()
	matches := conditions.New(cfg.Client().Resources()).ResourceMatch(obj, func(k8s.Object) bool { return ok() })
	if err := wait.For(matches, wait.WithContext(ctx), wait.WithTimeout(timeout), wait.WithInterval(pollInterval)); err != nil {
		t.Fatalf("no %s within %s: %v", what, timeout, err)
	}
}
