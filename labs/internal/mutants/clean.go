package mutants

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/example/operator-lab/clusters"
)

const (
	// cleanLimit is how long a cluster may take to be as it was. Namespaces alone rest for 5 s before
	// their controller looks at them.
	cleanLimit = time.Minute
	// cleanPoll is how often to look: what has to go is of many kinds, and nobody waits for it.
	cleanPoll = 200 * time.Millisecond
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// cleaned are the kinds of which a run of the suite, or a manager with all rights, leaves something behind.
var cleaned = []schema.GroupVersionResource{
	definitions,
	namespaces,
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	pods,
}

// cleaner makes a cluster what it was when the cleaner was made, as far as runs of the suite change it.
type cleaner struct {
	client dynamic.Interface
	before map[object]bool
	// system are the namespaces in which nobody but Kubernetes makes and replaces things.
	system map[string]bool
}

// object is one object of a cluster. One that was deleted and made anew is another one.
type object struct {
	kind schema.GroupVersionResource
	uid  types.UID
}

func newCleaner(ctx context.Context, cluster *clusters.Cluster) (*cleaner, error) {
	config, err := cluster.RESTConfig()
	if err != nil {
		return nil, fmt.Errorf("look at the cluster: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("look at the cluster: %w", err)
	}
	c := &cleaner{client: client, before: map[object]bool{}, system: map[string]bool{}}
	for _, kind := range cleaned {
		all, err := client.Resource(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("look at the cluster: %w", err)
		}
		for _, o := range all.Items {
			c.before[object{kind, o.GetUID()}] = true
			if kind == namespaces && o.GetName() != metav1.NamespaceDefault {
				c.system[o.GetName()] = true
			}
		}
	}
	return c, nil
}

// restarted says whether the cluster's controllers were started again, as labs with the check of garbage collection
// need it. The kubelet makes the next start wait for ten seconds, and longer each time.
func (c *cleaner) restarted(ctx context.Context) (bool, error) {
	options := metav1.ListOptions{LabelSelector: "component=kube-controller-manager"}
	controllers, err := c.client.Resource(pods).Namespace(metav1.NamespaceSystem).List(ctx, options)
	if err != nil {
		return false, fmt.Errorf("look at the controllers: %w", err)
	}
	for _, pod := range controllers.Items {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
		for _, status := range statuses {
			if fields, ok := status.(map[string]any); ok && fields["restartCount"] != int64(0) {
				return true, nil
			}
		}
	}
	return false, nil
}

// clean deletes what is new, and waits until it is gone.
func (c *cleaner) clean(ctx context.Context) error {
	var left []string
	err := wait.PollUntilContextTimeout(ctx, cleanPoll, cleanLimit, true, func(ctx context.Context) (bool, error) {
		left = nil
		for _, kind := range cleaned {
			all, err := c.client.Resource(kind).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for _, o := range all.Items {
				if c.before[object{kind, o.GetUID()}] || c.system[o.GetNamespace()] {
					continue
				}
				left = append(left, kind.Resource+" "+o.GetNamespace()+"/"+o.GetName())
				if err := c.remove(ctx, kind, &o); err != nil {
					return false, err
				}
			}
		}
		return len(left) == 0, nil
	})
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("left: %v", left))
	}
	if err != nil {
		return fmt.Errorf("clean the cluster: %w", err)
	}
	return nil
}

// remove asks for the deletion of an object, unless somebody did already, and takes away what holds it.
func (c *cleaner) remove(ctx context.Context, kind schema.GroupVersionResource, o *unstructured.Unstructured) error {
	if kind == definitions {
		if err := c.release(ctx, o); err != nil {
			return err
		}
	}
	options := metav1.DeleteOptions{}
	if kind == pods { // theirs is the only deletion that takes long
		if grace := o.GetDeletionGracePeriodSeconds(); grace != nil && *grace == 0 {
			return nil
		}
		options.GracePeriodSeconds = new(int64(0))
	} else if o.GetDeletionTimestamp() != nil {
		return nil
	}
	err := c.client.Resource(kind).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// release takes the finalizers away from the objects of a definition: the manager that would is gone.
func (c *cleaner) release(ctx context.Context, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if len(versions) == 0 {
		return nil
	}
	first, _ := versions[0].(map[string]any)
	version, _ := first["name"].(string)
	objects := c.client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural})
	all, err := objects.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the API server does not serve it
	}
	if err != nil {
		return err
	}
	for _, o := range all.Items {
		if len(o.GetFinalizers()) == 0 {
			continue
		}
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		_, err := objects.Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
