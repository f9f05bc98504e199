// Command main runs the operator.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1alpha1 "example.org/applied/api/v1alpha1"
	"example.org/applied/internal/apply"
)

func main() {
	metrics := flag.String("metrics-bind-address", "0", "where to serve metrics; 0 is nowhere")
	health := flag.String("health-probe-bind-address", "0", "where to serve /healthz; 0 is nowhere")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*metrics, *health); err != nil {
		ctrl.Log.Error(err, "Failed to run")
		os.Exit(1)
	}
}

func run(metrics, health string) error {
	image := os.Getenv("MEMCACHED_IMAGE")
	if image == "" {
		return errors.New("MEMCACHED_IMAGE is not set")
	}
	var registry *apply.Registry
	if address := os.Getenv("REGISTRY_URL"); address != "" {
		registry = &apply.Registry{URL: address}
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), cachev1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("fill scheme: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find cluster: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: metrics},
		HealthProbeBindAddress: health,
	})
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add health check: %w", err)
	}
	reconciler := &apply.Reconciler{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Events:   mgr.GetEventRecorder(apply.Owner),
		Image:    image,
		Registry: registry,
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up controller: %w", err)
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
