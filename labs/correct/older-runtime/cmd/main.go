// The operator. It takes its settings from the environment, as its author likes it.
package main

import (
	"errors"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.org/caching/controllers"
	cache "example.org/caching/pkg/apis/cache/v1alpha1"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	if err := serve(); err != nil {
		log.Error("cannot serve", "cause", err)
		os.Exit(1)
	}
}

func serve() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, cache.Install} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	image := os.Getenv("MEMCACHED_IMAGE")
	if image == "" {
		return errors.New("no MEMCACHED_IMAGE")
	}
	keeper := &controllers.Keeper{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorderFor("cache-keeper"),
		Image:    image,
	}
	if url := os.Getenv("REGISTRY_URL"); url != "" {
		keeper.Guests = &controllers.GuestBook{URL: url}
	}
	if err := keeper.Register(mgr); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
