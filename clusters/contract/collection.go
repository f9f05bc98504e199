package contract

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

const (
	// collectTimeout is less than the 30 s after which a controller manager looks for new kinds by itself.
	collectTimeout = 20 * time.Second
	// collectPoll is how often to ask for what has to come or to go.
	collectPoll = 100 * time.Millisecond
)

var kettles = schema.GroupVersionResource{Group: "contract.example.com", Version: "v1", Resource: "kettles"}

// collection wants the garbage collector to know a kind that was defined a moment ago, once the controllers were
// restarted: what belongs to a resource of that kind goes with it.
func (s *suite) collection(t *testing.T) {
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	define(t, clientset.NewForConfigOrDie(config))
	if err := s.provider.RestartControllers(ctx, s.cluster.Name); err != nil {
		t.Fatal(err)
	}
	owners := dynamic.NewForConfigOrDie(config).Resource(kettles).Namespace(metav1.NamespaceDefault)
	client := kubernetes.NewForConfigOrDie(config)
	owner := createKettle(t, owners)
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lid", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()},
	}}}
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	if _, err := maps.Create(ctx, child, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := owners.Delete(ctx, owner.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	err = wait.PollUntilContextTimeout(ctx, collectPoll, collectTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := maps.Get(ctx, child.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Fatalf("the ConfigMap of a deleted %s is still there after %s", owner.GetKind(), collectTimeout)
	}
	t.Logf("collected after %s", time.Since(start).Round(time.Millisecond))
}

// define installs a kind that no cluster knows.
func define(t *testing.T, client clientset.Interface) {
	t.Helper()
	preserve := true
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: kettles.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kettles.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: kettles.Resource, Singular: "kettle", Kind: "Kettle", ListKind: "KettleList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kettles.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
	if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createKettle makes one as soon as the API server serves the kind.
func createKettle(t *testing.T, kettles dynamic.ResourceInterface) (made *unstructured.Unstructured) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "contract.example.com/v1", "kind": "Kettle", "metadata": map[string]any{"name": "blue"},
	}}
	err := wait.PollUntilContextTimeout(t.Context(), collectPoll, collectTimeout, true, func(ctx context.Context) (_ bool, err error) {
		made, err = kettles.Create(ctx, obj, metav1.CreateOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("the API server does not serve a kind that was defined %s ago", collectTimeout)
	}
	return made
}
