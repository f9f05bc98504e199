// Command main runs the operator.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1alpha1 "example.org/applied/api/v1alpha1"
	"example.org/applied/internal/apply"
)

func main() {
	address := flag.String("metrics-bind-address", "0", "where to serve metrics; 0 is nowhere")
	health := flag.String("health-probe-bind-address", "0", "where to serve /healthz; 0 is nowhere")
	secure := flag.Bool("metrics-secure", false, "serve metrics over HTTPS, to accounts that may get them")
	elect := flag.Bool("leader-elect", false, "work only while holding the lease")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	serve := metricsserver.Options{BindAddress: *address, SecureServing: *secure}
	if *secure {
		serve.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if err := run(serve, *health, *elect); err != nil {
		ctrl.Log.Error(err, "Failed to run")
		os.Exit(1)
	}
}

func run(serve metricsserver.Options, health string, elect bool) error {
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
	namespaces := map[string]cache.Config{} // none are all
	for _, name := range strings.FieldsFunc(os.Getenv("WATCH_NAMESPACE"), func(r rune) bool { return r == ',' }) {
		namespaces[name] = cache.Config{}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find cluster: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultNamespaces: namespaces},
		Metrics:                       serve,
		HealthProbeBindAddress:        health,
		LeaderElection:                elect,
		LeaderElectionID:              "applied.example.org",
		LeaderElectionReleaseOnCancel: true,
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
	metrics.Registry.MustRegister(apply.Collect(mgr.GetClient()))
	return mgr.Start(ctrl.SetupSignalHandler())
}
