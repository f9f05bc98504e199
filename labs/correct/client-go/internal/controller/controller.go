// Package controller keeps a Deployment for each Memcached with nothing but client-go: informers that hold
// a copy of the world, a queue of names, and workers that take names off the queue. It is what
// controller-runtime does for its users.
package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/runtime"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.org/raw/internal/clients"
)

// Options are what a Controller works with. All are needed.
type Options struct {
	Memcacheds  *clients.Memcacheds
	Deployments appsclient.DeploymentsGetter
	// Children is the informer of Deployments. Somebody else starts it.
	Children appsinformers.DeploymentInformer
	// Events tells users what was done.
	Events events.EventRecorder
	// Image is what memcached runs from.
	Image string
}

// Controller looks after all Memcacheds of a cluster.
type Controller struct {
	Options
	informer    cache.SharedIndexInformer // of Memcacheds
	memcacheds  clients.Lister
	deployments appslisters.DeploymentLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// New returns a Controller that does not run yet.
func New(options Options) (*Controller, error) {
	informer := options.Memcacheds.Informer()
	c := &Controller{
		Options:     options,
		informer:    informer,
		memcacheds:  clients.NewLister(informer),
		deployments: options.Children.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "memcacheds"}),
	}
	// A Deployment has the name of its Memcached, so the news of both come to the same key.
	for _, i := range []cache.SharedIndexInformer{informer, options.Children.Informer()} {
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    c.enqueue,
			UpdateFunc: func(_, now any) { c.enqueue(now) },
			DeleteFunc: c.enqueue,
		}); err != nil {
			return nil, fmt.Errorf("listen to an informer: %w", err)
		}
	}
	return c, nil
}

func (c *Controller) enqueue(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		runtime.HandleError(err)
		return
	}
	c.queue.Add(key)
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context, workers int) error {
	var all sync.WaitGroup
	defer all.Wait()
	defer c.queue.ShutDown()
	all.Go(func() { c.informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced, c.Children.Informer().HasSynced) {
		return nil // ctx has ended
	}
	klog.FromContext(ctx).Info("Working", "workers", workers)
	for range workers {
		all.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// catchUp is how long an informer may take to hear of the latest. Its news usually come first.
const catchUp = time.Second

// next works on one name, and says whether there is going to be another.
func (c *Controller) next(ctx context.Context) bool {
	key, down := c.queue.Get()
	if down {
		return false
	}
	defer c.queue.Done(key)
	switch err := c.sync(ctx, key); {
	case err == nil, ctx.Err() != nil:
		c.queue.Forget(key)
	case errors.As(err, new(*foreignError)):
		c.queue.Forget(key) // Its end brings the name back.
	case outdated(err):
		c.queue.Forget(key)
		c.queue.AddAfter(key, catchUp)
	default:
		klog.FromContext(ctx).Error(err, "Trying again", "memcached", key)
		c.queue.AddRateLimited(key)
	}
	return true
}
