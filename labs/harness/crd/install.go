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
	// establishedAge is the age of the condition Established after it was dated back. While the condition is younger than 2 s, the API
	// server delays each object: other API servers may not serve the kind yet (serveResource in customresource_handler.go).
	establishedAge = 10 * time.Second
)

// Connect makes a client for custom resource definitions.
func Connect(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// Install applies the definition, and waits until it is Established. Several processes may do so at once. See [Refused] for the
// error of a definition that is not valid.
func Install(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	applied := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: definition.Name, Labels: definition.Labels, Annotations: definition.Annotations},
		Spec:       definition.Spec,
	}
	applied.Spec.Conversion = nil // no webhook runs, and the API server would call the one that a definition names
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

// established returns nil if the condition Established is true. It dates the condition back by [establishedAge], so that the first
// object is not delayed.
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
