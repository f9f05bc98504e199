package env

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
)

// insideLabel is the Ginkgo label of checks for which the learner's managers run in the cluster.
const insideLabel = "inside"

// Inside decorates a container with such checks. They are the last of a run, one after the other as they are written, and no other manager
// runs meanwhile: two that know nothing of each other would work on the same Memcacheds.
var Inside = []any{ginkgo.Ordered, ginkgo.ContinueOnFailure, ginkgo.Serial, ginkgo.SpecPriority(-1), ginkgo.Label(insideLabel)}

// defaultFolder is what the learner deploys.
const defaultFolder = "config/default"

// deployed is what [Deploy] has made.
type deployed struct {
	namespace string
	objects   []*unstructured.Unstructured
	err       error // why they are not all there
}

// DeployManifests are those of config/default, as kustomize builds them for a namespace, without the definition, which is installed
// already. The container of the one Deployment, that of two managers or more, gets this run's images. A mistake is a finding.
func DeployManifests(namespace string) (objects []*unstructured.Unstructured, err error) {
	objects, err = generate.Kustomize(current.config.Workspace, defaultFolder, namespace, "")
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" })
	var deployments []string
	for _, o := range objects {
		switch o.GetKind() {
		case "Namespace":
			o.SetLabels(restricted)
		case "Deployment":
			deployments = append(deployments, o.GetName())
			err = cmp.Or(err, setManager(o.Object))
			if n := replicas(o); n < 2 && err == nil {
				err = finding.New("one-replica", "two replicas of the manager", "spec.replicas %d in the Deployment %s", n, o.GetName())
			}
		}
	}
	if err == nil && len(deployments) != 1 {
		err = finding.New("no-manager", "one Deployment in "+defaultFolder+", that of the manager", "%q", deployments)
	}
	return objects, err
}

func replicas(deployment *unstructured.Unstructured) int32 {
	n, found, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if !found {
		n = 1
	}
	return int32(n)
}

// restricted has a namespace admit only Pods that keep the strictest Pod Security Standard.
var restricted = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}

// setManager tells the first container of a Deployment the images of this run, and to serve no webhooks. Where it says when it is ready,
// the kubelet asks each second, so that nobody waits for the next probe.
func setManager(deployment map[string]any) error {
	containers, _, err := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return finding.New("no-manager", "a Deployment with a container", "none: %v", err)
	}
	manager, _ := containers[0].(map[string]any)
	variables, _, _ := unstructured.NestedSlice(manager, "env")
	variables = slices.DeleteFunc(variables, func(v any) bool {
		variable, _ := v.(map[string]any)
		return variable["name"] == "MEMCACHED_IMAGE" || variable["name"] == "ENABLE_WEBHOOKS"
	})
	if image := current.config.ManagerImage; image != "" {
		manager["image"] = image
	}
	if probe, ok := manager["readinessProbe"].(map[string]any); ok {
		probe["initialDelaySeconds"], probe["periodSeconds"] = int64(0), int64(1)
	}
	manager["env"] = append(variables, map[string]any{"name": "MEMCACHED_IMAGE", "value": current.config.MemcachedImage},
		map[string]any{"name": "ENABLE_WEBHOOKS", "value": "false"})
	return unstructured.SetNestedSlice(deployment, containers, "spec", "template", "spec", "containers")
}

// Apply creates an object, or changes the one that is there. It refuses unknown fields, as `kubectl apply` does. What the API server does
// not take is a finding with the cause "rejected".
func Apply(ctx context.Context, o *unstructured.Unstructured, options ...client.CreateOption) error {
	err := current.admin.Create(ctx, o.DeepCopy(), append(options, client.FieldValidation("Strict"))...)
	if apierrors.IsAlreadyExists(err) && len(options) == 0 {
		err = current.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("lab"), client.ForceOwnership)
	}
	if refusal, refused := crd.Refused(err); refused || meta.IsNoMatchError(err) {
		return finding.New("rejected", "objects that the API server takes", "%s %s: %s", o.GetKind(), o.GetName(), cmp.Or(refusal.Text, fmt.Sprint(err)))
	}
	return client.IgnoreAlreadyExists(err)
}

// Deploy applies config/default, once in a run: all checks that are [Inside] work with the same managers. It returns the name of their
// Deployment, as that of a Memcached with such a Deployment.
func Deploy(ctx context.Context) (managers Memcached, err error) {
	d := &current.deployed
	if d.namespace == "" {
		d.namespace = "operator-" + current.shared.Run
		d.objects, d.err = DeployManifests(d.namespace)
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		namespace.SetName(d.namespace)
		namespace.SetLabels(restricted)
		d.objects = append([]*unstructured.Unstructured{namespace}, d.objects...)
		for _, o := range d.objects {
			if d.err == nil {
				d.err = Apply(ctx, o)
			}
		}
	}
	for _, o := range d.objects {
		if o.GetKind() == "Deployment" {
			managers = Memcached{Namespace: d.namespace, Name: o.GetName(), Size: replicas(o)}
		}
	}
	return managers, d.err
}

// undeploy removes what [Deploy] has made from a cluster that stays.
func undeploy(ctx context.Context) {
	for _, o := range slices.Backward(current.deployed.objects) {
		_ = current.admin.Delete(ctx, o)
	}
}

// MetricsPort is the port to which a Service leads that has "metrics" in its name.
func MetricsPort(ctx context.Context, namespace string) (port int, err error) {
	endpoints := &discoveryv1.EndpointSliceList{}
	err = current.admin.List(ctx, endpoints, client.InNamespace(namespace))
	for _, e := range endpoints.Items {
		if strings.Contains(e.Labels[discoveryv1.LabelServiceName], "metrics") && len(e.Endpoints) > 0 && len(e.Ports) > 0 {
			return int(*e.Ports[0].Port), err
		}
	}
	return 0, cmp.Or(err, error(finding.New("no-service", `a Service with "metrics" in its name, which leads to the managers`, "none")))
}

// Forward makes a port of a Pod a port of this machine, until ctx ends.
func Forward(ctx context.Context, pod corev1.Pod, port int) (address string, err error) {
	url := current.clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(current.adminConfig)
	if err != nil {
		return "", fmt.Errorf("prepare port-forward: %w", err)
	}
	dialer, ready := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ctx.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return "", fmt.Errorf("forward a port to Pod %s: %w", pod.Name, err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), nil
}
