package clusters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// Where kubeadm puts CoreDNS.
const (
	dnsNamespace = "kube-system"
	dnsName      = "coredns"
)

// dnsProbeSeconds is how often CoreDNS is asked whether it is ready. kubeadm says
// nothing, which means every ten seconds, of which a new cluster spends up to ten waiting.
const dnsProbeSeconds = 1

// dnsTimeout is for a handful of requests and one run of kubeadm. They take half a second.
const dnsTimeout = time.Minute

// installDNS installs CoreDNS as kubeadm would, with one copy, because two on one
// node fail together, and with a faster probe. To change what kubeadm has installed
// would start three Pods in turn, each for half a second of a core. A configuration
// that does not leave the phase out, as kind.yaml does, has its CoreDNS already.
func (a *attempt) installDNS(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, dnsTimeout, fmt.Errorf("not done within %v", dnsTimeout))
	defer cancel()
	client, err := connect(a.Kubeconfig(a.name))
	if err != nil {
		return err
	}
	_, err = client.AppsV1().Deployments(dnsNamespace).Get(ctx, dnsName, metav1.GetOptions{})
	switch {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("look for CoreDNS: %w", err)
	}
	manifests, err := a.dnsManifests(ctx)
	if err != nil {
		return err
	}
	for _, object := range manifests {
		if err := createDNS(ctx, client, object); err != nil {
			return fmt.Errorf("install CoreDNS: %w", err)
		}
	}
	return nil
}

// dnsManifests are the objects of which kubeadm's CoreDNS consists, for this version and network. kubeadm prints them
// since 1.25 (kubernetes/kubernetes#109995).
func (a *attempt) dnsManifests(ctx context.Context) ([]runtime.Object, error) {
	plane, err := a.controlPlane(ctx, a.name)
	if err != nil {
		return nil, err
	}
	var out, complaint bytes.Buffer
	print := plane.CommandContext(ctx, "kubeadm", "init", "phase", "addon", "coredns", "--config=/kind/kubeadm.conf", "--print-manifest")
	if err := print.SetStdout(&out).SetStderr(&complaint).Run(); err != nil {
		return nil, fmt.Errorf("ask kubeadm for CoreDNS: %w: %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	return decodeDNS(out.Bytes())
}

// decodeDNS reads manifests, which kubeadm separates by dashes, the first one included, and sorts them.
func decodeDNS(text []byte) (objects []runtime.Object, err error) {
	for _, document := range bytes.Split(text, []byte("---\n")) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("read kubeadm's CoreDNS: %w", err)
		}
		objects = append(objects, object)
	}
	// Whatever its Pods need stands before the Deployment: a Pod that lacks something is tried again seconds later.
	slices.SortStableFunc(objects, func(a, b runtime.Object) int { return isDeployment(a) - isDeployment(b) })
	return objects, nil
}

// isDeployment is 1 for a Deployment and 0 for anything else: a key to sort by.
func isDeployment(object runtime.Object) int {
	if _, ok := object.(*appsv1.Deployment); ok {
		return 1
	}
	return 0
}

// createDNS creates one of the objects.
func createDNS(ctx context.Context, client kubernetes.Interface, object runtime.Object) (err error) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Spec.Replicas = new(int32(1))
		for i := range o.Spec.Template.Spec.Containers {
			if probe := o.Spec.Template.Spec.Containers[i].ReadinessProbe; probe != nil {
				probe.PeriodSeconds = dnsProbeSeconds
			}
		}
		_, err = client.AppsV1().Deployments(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *corev1.ConfigMap:
		_, err = client.CoreV1().ConfigMaps(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *corev1.Service:
		_, err = client.CoreV1().Services(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *corev1.ServiceAccount:
		_, err = client.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.ClusterRole:
		_, err = client.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.ClusterRoleBinding:
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
	default:
		err = errors.ErrUnsupported
	}
	if err != nil {
		return fmt.Errorf("create %T: %w", object, err)
	}
	return nil
}
