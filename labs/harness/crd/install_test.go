package crd_test

import (
	"context"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/operator-lab/labs/harness/crd"
)

// The API server keeps every object of a kind waiting for 2 s whose condition Established is younger than that.
func TestInstallBackdatesEstablished(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	establish := func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
		if err := c.Apply(ctx, obj, opts...); err != nil {
			return err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(parse(t)), definition); err != nil {
			return err
		}
		definition.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: metav1.Now(),
		}}
		return c.Status().Update(ctx, definition)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&apiextensionsv1.CustomResourceDefinition{}).
		WithInterceptorFuncs(interceptor.Funcs{Apply: establish}).Build()
	if err := crd.Install(t.Context(), c, parse(t)); err != nil {
		t.Fatal(err)
	}
	installed := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(parse(t)), installed); err != nil {
		t.Fatal(err)
	}
	if age := time.Since(installed.Status.Conditions[0].LastTransitionTime.Time); age < 2*time.Second {
		t.Errorf("Established is %v old, so that the API server keeps the first object waiting", age)
	}
}
