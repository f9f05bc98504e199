// Package controller keeps a Deployment and a Service for each Memcached with nothing but client-go: informers that keep
// copies of objects, a queue of names, and workers that take names off the queue. It is what
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
	"example.org/raw/internal/registry"
)

// Options are what a Controller works with. All but the last are needed.
type Options struct {
	Memcacheds  *clients.Memcacheds
	Deployments appsclient.DeploymentsGetter
	Services    coreclient.ServicesGetter
	// The caller starts the informers.
	DeploymentInformer appsinformers.DeploymentInformer
	ServiceInformer    coreinformers.ServiceInformer
	ConfigMapInformer  coreinformers.ConfigMapInformer
	// Events tells users what was done.
	Events events.EventRecorder
	// Image is what memcached runs from.
	Image string
	// Registry is the registry of caches, if there is one.
	Registry registry.Registry
}

// Controller looks after all Memcacheds of a cluster.
type Controller struct {
	Options
	informer    cache.SharedIndexInformer // of Memcacheds
	memcacheds  clients.Lister
	deployments appslisters.DeploymentLister
	services    corelisters.ServiceLister
	configMaps  corelisters.ConfigMapLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	entries     workqueue.TypedDelayingInterface[cache.ObjectName] // for the workers of the registry
	registered  sync.Map                                           // the condition Registered, by uid
}

// New returns a Controller that does not run yet.
func New(options Options) (*Controller, error) {
	informer := options.Memcacheds.Informer()
	c := &Controller{
		Options:     options,
		informer:    informer,
		memcacheds:  clients.NewLister(informer),
		deployments: options.DeploymentInformer.Lister(),
		services:    options.ServiceInformer.Lister(),
		configMaps:  options.ConfigMapInformer.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "memcacheds"}),
		entries: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[cache.ObjectName]{Name: "entries"}),
	}
	// Deployment and Service have the name of their Memcached, so the events of all three enqueue the same name.
	for _, i := range []cache.SharedIndexInformer{informer, options.DeploymentInformer.Informer(), options.ServiceInformer.Informer()} {
		if err := listen(i, c.enqueue); err != nil {
			return nil, err
		}
	}
	if err := listen(informer, c.enqueueEntry); err != nil {
		return nil, err
	}
	return c, listen(options.ConfigMapInformer.Informer(), c.enqueueUsers)
}

// listen calls handle for every event of an informer.
func listen(informer cache.SharedIndexInformer, handle func(obj any)) error {
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    handle,
		UpdateFunc: func(_, now any) { handle(now) },
		DeleteFunc: handle,
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
	if _, err := c.memcacheds.Get(key); err == nil { // else it is somebody else's Deployment or Service
		c.queue.Add(key)
	}
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
	defer c.entries.ShutDown()
	all.Go(func() { c.informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced, c.DeploymentInformer.Informer().HasSynced,
		c.ServiceInformer.Informer().HasSynced, c.ConfigMapInformer.Informer().HasSynced) {
		return nil // ctx has ended
	}
	klog.FromContext(ctx).Info("Working", "workers", workers)
	for range workers {
		all.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	for range registryWorkers {
		all.Go(func() {
			for c.nextEntry(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// catchUp is how long an informer may be behind the API server. Its event usually comes first.
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
		c.queue.Forget(key) // The watch event of its deletion enqueues the name again.
	case outdated(err):
		c.queue.Forget(key)
		c.queue.AddAfter(key, catchUp)
	default:
		klog.FromContext(ctx).Error(err, "Trying again", "memcached", key)
		c.queue.AddRateLimited(key)
	}
	return true
}
