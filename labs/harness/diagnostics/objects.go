package diagnostics

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// outputLines is how much is kept of a container's output, and outputPods how many containers are asked: the others of a
// Deployment say the same.
const outputLines, outputPods = 50, 3

// objects are what a check's namespaces hold. Secrets are never read.
type objects struct {
	all         []unstructured.Unstructured
	memcacheds  []string // their names
	deployments []appsv1.Deployment
	pods        []corev1.Pod
	events      []eventsv1.Event // in the order of their creation
}

// Read looks at the objects in the namespaces: those of the learner's kind, and what a Deployment brings
// about. What cannot be read within ctx is left out.
func (s *Snapshot) Read(ctx context.Context, c client.Reader, clientset kubernetes.Interface, learners schema.GroupVersionKind) {
	for _, ns := range s.Namespaces {
		for _, kind := range []schema.GroupVersionKind{
			learners,
			appsv1.SchemeGroupVersion.WithKind("Deployment"),
			appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
			corev1.SchemeGroupVersion.WithKind("Pod"),
		} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			if c.List(ctx, list, client.InNamespace(ns)) == nil {
				s.objects.add(list.Items, learners.Kind)
			}
		}
		var events eventsv1.EventList
		if c.List(ctx, &events, client.InNamespace(ns)) == nil {
			s.objects.events = append(s.objects.events, events.Items...)
		}
	}
	slices.SortStableFunc(s.objects.events, func(a, b eventsv1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	s.output = outputs(ctx, clientset, s.objects.pods)
}

func (o *objects) add(items []unstructured.Unstructured, learners string) {
	for _, item := range items {
		item.SetManagedFields(nil)
		o.all = append(o.all, item)
		switch item.GetKind() {
		case learners:
			o.memcacheds = append(o.memcacheds, item.GetName())
		case "Deployment":
			o.deployments = appendTyped(o.deployments, item)
		case "Pod":
			o.pods = appendTyped(o.pods, item)
		}
	}
}

func appendTyped[T any](list []T, item unstructured.Unstructured) []T {
	var typed T
	if runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &typed) != nil {
		return list
	}
	return append(list, typed)
}

// outputs asks the containers that are in trouble what they said last.
func outputs(ctx context.Context, clientset kubernetes.Interface, pods []corev1.Pod) map[string]string {
	said := map[string]string{}
	for _, pod := range pods {
		for _, c := range statuses(pod) {
			if trouble(c) == "" || len(said) == outputPods {
				continue
			}
			options := &corev1.PodLogOptions{Container: c.Name, TailLines: new(int64(outputLines))}
			text, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
			if err == nil && len(text) > 0 {
				said[pod.Name+"/"+c.Name] = string(text)
			}
		}
	}
	return said
}

func statuses(pod corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}
