// Command main runs the operator: four informers, two queues, and workers for each.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"example.org/raw/apis/cache/v1alpha1"
	"example.org/raw/internal/clients"
	"example.org/raw/internal/controller"
	"example.org/raw/internal/registry"
)

func main() {
	workers := flag.Int("workers", 4, "how many Memcacheds to look after at the same time")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("MEMCACHED_IMAGE"), *workers); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to run")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

func run(ctx context.Context, image string, workers int) error {
	if image == "" {
		return errors.New("MEMCACHED_IMAGE is empty")
	}
	config, err := findCluster()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("fill scheme: %w", err)
	}
	memcacheds, err := clients.New(config, scheme)
	if err != nil {
		return err
	}
	builtIn, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for built-in types: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: builtIn.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("start recording events: %w", err)
	}
	defer broadcaster.Shutdown()
	factory := informers.NewSharedInformerFactory(builtIn, 0)
	c, err := controller.New(controller.Options{
		Memcacheds:         memcacheds,
		Deployments:        builtIn.AppsV1(),
		Services:           builtIn.CoreV1(),
		DeploymentInformer: factory.Apps().V1().Deployments(),
		ServiceInformer:    factory.Core().V1().Services(),
		ConfigMapInformer:  factory.Core().V1().ConfigMaps(),
		Events:             broadcaster.NewRecorder(scheme, "memcached-operator"),
		Image:              image,
		Registry:           registry.Registry(os.Getenv("REGISTRY_URL")),
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	return c.Run(ctx, workers)
}

// findCluster looks where kubectl does, and then for the service account of a Pod.
func findCluster() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find cluster: %w", err)
	}
	// The default is 5 requests in a second. The API server limits its clients itself.
	config.QPS, config.Burst = -1, -1
	return config, nil
}
