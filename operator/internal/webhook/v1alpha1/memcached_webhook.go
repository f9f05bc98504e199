/*
SPDX-License-Identifier: Apache-2.0
*/

// Package v1alpha1 has what the API server asks about a Memcached before it stores one.
package v1alpha1

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// SetupMemcachedWebhookWithManager registers the webhook for Memcached in the manager.
func SetupMemcachedWebhookWithManager(mgr ctrl.Manager) error {
	// A reader without a cache: a cache may not have heard yet of what a user has just created.
	reader := mgr.GetAPIReader()
	return ctrl.NewWebhookManagedBy(mgr, &cachev1alpha1.Memcached{}).
		WithValidator(&MemcachedValidator{Reader: reader}).
		WithDefaulter(&MemcachedDefaulter{Reader: reader}).
		Complete()
}

// +kubebuilder:rbac:groups=core,resources=namespaces,verbs=get

// lab:12 begin defaulter-marker
// +kubebuilder:webhook:path=/mutate-cache-example-com-v1alpha1-memcached,mutating=true,failurePolicy=fail,sideEffects=None,groups=cache.example.com,resources=memcacheds,verbs=create,versions=v1alpha1,name=mmemcached-v1alpha1.kb.io,admissionReviewVersions=v1
// lab:12 end

// MemcachedDefaulter gives a new Memcached the memory that its namespace asks for.
type MemcachedDefaulter struct {
	Reader client.Reader
}

// lab:12 begin default

const (
	// memoryAnnotation of a namespace is the memory of its new Memcacheds, in MiB.
	memoryAnnotation = "cache.example.com/memory"
	// defaultMemory is the memory in a namespace without that annotation.
	defaultMemory = 64
)

// Default implements admission.Defaulter so a webhook will be registered for the Kind Memcached.
func (d *MemcachedDefaulter) Default(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if memcached.Spec.Memory != 0 {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := d.Reader.Get(ctx, client.ObjectKey{Name: memcached.Namespace}, namespace); err != nil {
		return fmt.Errorf("get Namespace: %w", err)
	}
	memcached.Spec.Memory = defaultMemory
	if text, ok := namespace.Annotations[memoryAnnotation]; ok {
		memory, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return fmt.Errorf("annotation %s of Namespace %s: %q is not a number of MiB", memoryAnnotation, namespace.Name, text)
		}
		memcached.Spec.Memory = int32(memory)
	}
	return nil
}

// lab:12 end

// lab:12 begin validator-marker
// +kubebuilder:webhook:path=/validate-cache-example-com-v1alpha1-memcached,mutating=false,failurePolicy=fail,sideEffects=None,groups=cache.example.com,resources=memcacheds,verbs=create;update,versions=v1alpha1,name=vmemcached-v1alpha1.kb.io,admissionReviewVersions=v1
// lab:12 end

// MemcachedValidator refuses a new Memcached that could not get its Deployment, and
// warns of a ConfigMap that is missing.
type MemcachedValidator struct {
	Reader client.Reader
}

// lab:12 begin validate-create

// ValidateCreate implements admission.Validator so a webhook will be registered for the type Memcached.
func (v *MemcachedValidator) ValidateCreate(ctx context.Context, memcached *cachev1alpha1.Memcached) (admission.Warnings, error) {
	deployment := &appsv1.Deployment{}
	err := v.Reader.Get(ctx, client.ObjectKeyFromObject(memcached), deployment)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("get Deployment: %w", err)
	case !belongsToMemcached(deployment):
		return nil, fmt.Errorf("the name %s is taken: there is a Deployment that belongs to no Memcached", memcached.Name)
	}
	return v.warnings(ctx, memcached), nil
}

// belongsToMemcached tells whether a Memcached controls deployment. An earlier one
// of the same name counts: the garbage collector deletes its Deployment.
func belongsToMemcached(deployment *appsv1.Deployment) bool {
	owner := metav1.GetControllerOf(deployment)
	return owner != nil && owner.Kind == "Memcached"
}

// lab:12 end

// lab:12 begin validate-update

// ValidateUpdate implements admission.Validator so a webhook will be registered for the type Memcached.
// It refuses nothing: what exists has to stay changeable, or nobody could remove a finalizer from it.
func (v *MemcachedValidator) ValidateUpdate(ctx context.Context, _, memcached *cachev1alpha1.Memcached) (admission.Warnings, error) {
	return v.warnings(ctx, memcached), nil
}

// ValidateDelete implements admission.Validator so a webhook will be registered for the type Memcached.
func (v *MemcachedValidator) ValidateDelete(context.Context, *cachev1alpha1.Memcached) (admission.Warnings, error) {
	return nil, nil
}

// lab:12 end

// lab:12 begin warnings

// warnings returns a warning if the ConfigMap that memcached names is missing. That
// is no error: the ConfigMap may come later.
func (v *MemcachedValidator) warnings(ctx context.Context, memcached *cachev1alpha1.Memcached) admission.Warnings {
	name := memcached.Spec.OptionsFrom.Name
	if name == "" {
		return nil
	}
	err := v.Reader.Get(ctx, client.ObjectKey{Namespace: memcached.Namespace, Name: name}, &corev1.ConfigMap{})
	if apierrors.IsNotFound(err) {
		return admission.Warnings{fmt.Sprintf("there is no ConfigMap %s", name)}
	}
	return nil
}

// lab:12 end
