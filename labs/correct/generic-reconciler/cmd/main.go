// The operator: a manager, and one keeper for the one kind it looks after.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.org/keeper/api"
	"example.org/keeper/internal/keeper"
	"example.org/keeper/internal/memcacheds"
)

// All settings are in the environment: MEMCACHED_IMAGE, and METRICS_ADDRESS for a metrics server.
func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(os.Getenv("MEMCACHED_IMAGE"), cmp.Or(os.Getenv("METRICS_ADDRESS"), "0")); err != nil {
		ctrl.Log.Error(err, "The operator ends")
		os.Exit(1)
	}
}

func run(image, metrics string) error {
	if image == "" {
		return errors.New("MEMCACHED_IMAGE names no image")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("fill scheme: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find cluster: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: metrics},
		// A read waits until the cache has seen what this client wrote, so no pass works on older news
		// than its own. Without it, the keeper would have to expect to meet its own writes as conflicts.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
	})
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	if err := keeper.Add(mgr, "memcached", memcacheds.Recipe{Image: image}); err != nil {
		return fmt.Errorf("add keeper: %w", err)
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
