package crd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	installLimit = 10 * time.Second      // a good definition is Established and served within a second
	poll         = 50 * time.Millisecond // discovery has no watch
	// establishedAge is how old a definition seems. The API server holds each object for 2 s while Established is younger than that,
	// for another API server of the cluster that may not know the kind yet (serveResource in customresource_handler.go).
	establishedAge = 10 * time.Second
)

// Connect makes a client for definitions.
func Connect(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// Install applies the definition, and waits until it is Established. Several processes may do so at once. The error tells what
// the API server objects to.
func Install(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	applied := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: definition.Name, Labels: definition.Labels, Annotations: definition.Annotations},
		Spec:       definition.Spec,
	}
	applied.Spec.Conversion = nil // nobody serves conversions, and the API server would ask the address that stands there
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(applied)
	if err != nil {
		return fmt.Errorf("install definition %s: %w", definition.Name, err)
	}
	delete(object, "status")
	config := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: object})
	if err := c.Apply(ctx, config, client.FieldOwner("lab"), client.ForceOwnership); err != nil {
		return fmt.Errorf("install definition %s: %w", definition.Name, err)
	}
	return eventually(ctx, func(ctx context.Context) error {
		current := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(definition), current); err != nil {
			return fmt.Errorf("get definition %s: %w", definition.Name, err)
		}
		return established(ctx, c, current)
	})
}

// established is nil for a definition whose condition Established is true. It dates the condition back, so that the first object
// does not wait.
func established(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	condition := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established)
	switch {
	case condition == nil || condition.Status != apiextensionsv1.ConditionTrue:
		why := fmt.Sprintf("definition %s is not Established", crd.Name)
		for _, c := range crd.Status.Conditions {
			if c.Status != apiextensionsv1.ConditionTrue {
				why += fmt.Sprintf("; %s: %s", c.Type, c.Message)
			}
		}
		return errors.New(why)
	case time.Since(condition.LastTransitionTime.Time) >= establishedAge/2:
		return nil
	}
	condition.LastTransitionTime = metav1.NewTime(time.Now().Add(-establishedAge))
	return c.Status().Update(ctx, crd)
}
