// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// These specs run the manager in this process, against a real cluster: the one
// of KUBECONFIG. They install the CRD and leave it there; everything else lives
// in namespaces that are deleted afterwards.

const (
	// stays is how many looks in a row have to see the same of something that stays so.
	stays = 20
	// soon is how long a Pod may take to start, its image to be pulled included.
	soon = 60 * time.Second
	// quiet is how long nothing must happen, for nothing to have happened.
	quiet = 2 * time.Second
	// tick is how often to look.
	tick = 100 * time.Millisecond
)

var (
	k8sClient  client.Client
	testScheme = newScheme()
	testImage  = cmp.Or(os.Getenv("MEMCACHED_IMAGE"), "docker.io/library/memcached:1.6")
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cachev1alpha1.AddToScheme(scheme))
	return scheme
}

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Controller suite")
}

var _ = BeforeSuite(func() {
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(tick)
	SetDefaultConsistentlyDuration(quiet)
	SetDefaultConsistentlyPollingInterval(tick)

	config := clusterConfig()
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths:              []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfPathMissing: true,
	})
	Expect(err).NotTo(HaveOccurred(), "install the CRD")

	k8sClient, err = client.New(config, client.Options{Scheme: testScheme})
	Expect(err).NotTo(HaveOccurred())

	startManager(config)
})

// clusterConfig returns the way to the cluster of KUBECONFIG. Without one there
// is nothing to test on, and that is a failure: a skipped test looks like a
// passed one. A cluster on another machine has to be asked for.
func clusterConfig() *rest.Config {
	GinkgoHelper()
	if os.Getenv("KUBECONFIG") == "" {
		Fail("KUBECONFIG is not set. These tests need a cluster, for example: kind create cluster --kubeconfig kubeconfig && KUBECONFIG=$PWD/kubeconfig make test")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	Expect(err).NotTo(HaveOccurred(), "read KUBECONFIG")

	server, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	host := server.Hostname()
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && os.Getenv("ALLOW_REMOTE") != "1" {
		Fail("The server " + config.Host + " is not on this machine. If you mean it: make test ALLOW_REMOTE=1")
	}
	return config
}

// startManager runs the manager until the suite ends.
func startManager(config *rest.Config) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  testScheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Logger:  logf.Log,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect((&MemcachedReconciler{
		Client:   mgr.GetClient(),
		Scheme:   mgr.GetScheme(),
		Image:    testImage,
		Recorder: mgr.GetEventRecorder("memcached-controller"),
	}).SetupWithManager(mgr)).To(Succeed())

	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	DeferCleanup(func() {
		cancel()
		Eventually(stopped).Should(Receive(Succeed()))
	})
	go func() { stopped <- mgr.Start(ctx) }()
}

// newNamespace returns a namespace that lasts as long as the spec, and in which
// only Pods run that keep to the standard "restricted".
func newNamespace(ctx SpecContext) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "memcached-test-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	Expect(k8sClient.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, namespace))).To(Succeed())
	}, NodeTimeout(soon))
	return namespace.Name
}
