// SPDX-License-Identifier: Apache-2.0

// Command main runs the Memcached operator: a manager with its controllers.
package main

import (
	"crypto/tls"
	"flag"
	"os"

	// The credential plugins that a kubeconfig may ask for (exec, OIDC, clouds).
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/controller"
	"github.com/example/memcached-operator/internal/registry"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))

	utilruntime.Must(cachev1alpha1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	var (
		metricsAddr, probeAddr                           string
		metricsCertPath, metricsCertName, metricsCertKey string
		webhookCertPath, webhookCertName, webhookCertKey string
		enableLeaderElection, secureMetrics, enableHTTP2 bool
	)
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0",
		"Where to serve metrics, for example 127.0.0.1:8080, or :8443 in a Pod. 0 means not at all.")
	flag.StringVar(&probeAddr, "health-probe-bind-address", "127.0.0.1:8081",
		"Where to serve /healthz and /readyz. In a Pod :8081, for the kubelet; the default is for this machine alone.")
	flag.BoolVar(&enableLeaderElection, "leader-elect", false,
		"Let only one of several managers work at a time. Needs a namespace, so it works inside a cluster only.")
	flag.BoolVar(&secureMetrics, "metrics-secure", true,
		"Serve metrics over HTTPS, to those who are allowed to read them. With =false: over HTTP, to everybody.")
	flag.StringVar(&metricsCertPath, "metrics-cert-path", "",
		"The directory of the certificate for metrics. If empty, one is made up at the start.")
	flag.StringVar(&metricsCertName, "metrics-cert-name", "tls.crt", "The file name of the certificate for metrics.")
	flag.StringVar(&metricsCertKey, "metrics-cert-key", "tls.key", "The file name of the key for metrics.")
	flag.StringVar(&webhookCertPath, "webhook-cert-path", "", "The directory of the certificate for webhooks.")
	flag.StringVar(&webhookCertName, "webhook-cert-name", "tls.crt", "The file name of the certificate for webhooks.")
	flag.StringVar(&webhookCertKey, "webhook-cert-key", "tls.key", "The file name of the key for webhooks.")
	flag.BoolVar(&enableHTTP2, "enable-http2", false, "Allow HTTP/2 for metrics and webhooks.")
	opts := zap.Options{Development: true}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()

	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))

	var tlsOpts []func(*tls.Config)
	if !enableHTTP2 {
		// HTTP/2 lets a client reset streams faster than a server can clean up
		// after them (CVE-2023-44487), and nothing here needs it.
		tlsOpts = append(tlsOpts, func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} })
	}

	// The webhook server is started only if there are webhooks.
	webhookServer := webhook.NewServer(webhook.Options{
		CertDir:  webhookCertPath,
		CertName: webhookCertName,
		KeyName:  webhookCertKey,
		TLSOpts:  tlsOpts,
	})

	metricsOptions := metricsserver.Options{
		BindAddress:   metricsAddr,
		SecureServing: secureMetrics,
		CertDir:       metricsCertPath,
		CertName:      metricsCertName,
		KeyName:       metricsCertKey,
		TLSOpts:       tlsOpts,
	}
	if secureMetrics {
		// Ask the API server who is calling and whether they may: see config/rbac/metrics_*.yaml.
		metricsOptions.FilterProvider = filters.WithAuthenticationAndAuthorization
	}

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsOptions,
		WebhookServer:          webhookServer,
		HealthProbeBindAddress: probeAddr,
		LeaderElection:         enableLeaderElection,
		LeaderElectionID:       "memcached-operator.example.com",
	})
	if err != nil {
		setupLog.Error(err, "Failed to create manager")
		os.Exit(1)
	}

	if err := (&controller.MemcachedReconciler{
		Client: mgr.GetClient(),
		Scheme: mgr.GetScheme(),
		// lab:4 begin image Give the reconciler the image of memcached, from MEMCACHED_IMAGE.
		Image: os.Getenv("MEMCACHED_IMAGE"),
		// lab:4 end
		// lab:6 begin recorder Give the reconciler a recorder.
		Recorder: mgr.GetEventRecorder("memcached-controller"),
		// lab:6 end
		// lab:10 begin registry Give the reconciler the registry at REGISTRY_URL.
		Registry: registry.New(os.Getenv("REGISTRY_URL")),
		// lab:10 end
	}).SetupWithManager(mgr); err != nil {
		setupLog.Error(err, "Failed to set up controller", "controller", "memcached")
		os.Exit(1)
	}
	// +kubebuilder:scaffold:builder

	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		setupLog.Error(err, "Failed to set up health check")
		os.Exit(1)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		setupLog.Error(err, "Failed to set up ready check")
		os.Exit(1)
	}

	setupLog.Info("Starting manager")
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		setupLog.Error(err, "Failed to run manager")
		os.Exit(1)
	}
}
