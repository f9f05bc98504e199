// Package controller keeps a Deployment and a Service for each Memcached with nothing but client-go: informers that hold
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
	coreinformers "k8s.io/client-go/informers/core/v1"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.org/raw/internal/clients"
	"example.org/raw/internal/ledger"
)

// Options are what a Controller works with. All but the last are needed.
type Options struct {
	Memcacheds  *clients.Memcacheds
	Deployments appsclient.DeploymentsGetter
	Services    coreclient.ServicesGetter
	// Children, Doors and ConfigMaps are informers. Somebody else starts them.
	Children   appsinformers.DeploymentInformer
	Doors      coreinformers.ServiceInformer
	ConfigMaps coreinformers.ConfigMapInformer
	// Events tells users what was done.
	Events events.EventRecorder
	// Image is what memcached runs from.
	Image string
	// Ledger is the registry of caches, if there is one.
	Ledger ledger.Ledger
}

// Controller looks after all Memcacheds of a cluster.
type Controller struct {
	Options
	informer    cache.SharedIndexInformer // of Memcacheds
	memcacheds  clients.Lister
	deployments appslisters.DeploymentLister
	doors       corelisters.ServiceLister
	configMaps  corelisters.ConfigMapLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	lines       workqueue.TypedDelayingInterface[cache.ObjectName] // for clerks
	claims      sync.Map                                           // of uids: Registered, as a clerk has found it
}

// New returns a Controller that does not run yet.
func New(options Options) (*Controller, error) {
	informer := options.Memcacheds.Informer()
	c := &Controller{
		Options:     options,
		informer:    informer,
		memcacheds:  clients.NewLister(informer),
		deployments: options.Children.Lister(),
		doors:       options.Doors.Lister(),
		configMaps:  options.ConfigMaps.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "memcacheds"}),
		lines: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[cache.ObjectName]{Name: "lines"}),
	}
	// Deployment and Service have the name of their Memcached, so the news of all three come to the same key.
	for _, i := range []cache.SharedIndexInformer{informer, options.Children.Informer(), options.Doors.Informer()} {
		if err := listen(i, c.enqueue); err != nil {
			return nil, err
		}
	}
	if err := listen(informer, c.enqueueLine); err != nil {
		return nil, err
	}
	return c, listen(options.ConfigMaps.Informer(), c.enqueueUsers)
}

// listen has an informer tell all of its news in the same way.
func listen(informer cache.SharedIndexInformer, tell func(obj any)) error {
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, now any) { tell(now) },
		DeleteFunc: tell,
	}); err != nil {
		return fmt.Errorf("listen to an informer: %w", err)
	}
	return nil
}

func (c *Controller) enqueue(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		runtime.HandleError(err)
		return
	}
	c.queue.Add(key)
}

// enqueueUsers enqueues the Memcacheds that name a ConfigMap.
func (c *Controller) enqueueUsers(obj any) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		runtime.HandleError(err)
		return
	}
	users, err := c.informer.GetIndexer().ByIndex(clients.ByOptions, name.String())
	if err != nil {
		runtime.HandleError(err)
	}
	for _, user := range users {
		c.enqueue(user)
	}
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context, workers int) error {
	var all sync.WaitGroup
	defer all.Wait()
	defer c.queue.ShutDown()
	defer c.lines.ShutDown()
	all.Go(func() { c.informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced, c.Children.Informer().HasSynced,
		c.Doors.Informer().HasSynced, c.ConfigMaps.Informer().HasSynced) {
		return nil // ctx has ended
	}
	klog.FromContext(ctx).Info("Working", "workers", workers)
	for range workers {
		all.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	for range clerks {
		all.Go(func() {
			for c.file(ctx) {
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
