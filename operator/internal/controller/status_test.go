// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/registry"
)

var refused = []appsv1.DeploymentCondition{{
	Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota",
}}

func TestAvailable(t *testing.T) {
	tests := map[string]struct {
		status  appsv1.DeploymentStatus
		failure error
		want    metav1.ConditionStatus
		reason  string
		message string
	}{
		"as many as wanted": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, AvailableReplicas: 3},
			want:   metav1.ConditionTrue, reason: reasonAvailable,
		},
		"too few": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, AvailableReplicas: 2, Replicas: 3},
			want:   metav1.ConditionFalse, reason: reasonUnavailable, message: "replicas: 2 available, 3 wanted",
		},
		"more than wanted, as in a rollout": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, AvailableReplicas: 4},
			want:   metav1.ConditionTrue, reason: reasonAvailable,
		},
		"Pods refused": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, AvailableReplicas: 1, Conditions: refused},
			want:   metav1.ConditionFalse, reason: reasonBlocked, message: "exceeded quota",
		},
		"as many as wanted, whatever was refused on the way": {
			status: appsv1.DeploymentStatus{ObservedGeneration: 2, AvailableReplicas: 3, Conditions: refused},
			want:   metav1.ConditionTrue, reason: reasonAvailable,
		},
		"someone else's": {
			failure: &terminalError{reasonDeploymentConflict, "Deployment cache exists already"},
			want:    metav1.ConditionFalse, reason: reasonDeploymentConflict, message: "Deployment cache exists already",
		},
		"refused by the API server": {
			failure: errors.New("create Deployment: no"),
			want:    metav1.ConditionFalse, reason: reasonFailed, message: "create Deployment: no",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: test.status}
			if test.failure != nil {
				deployment = nil
			}
			condition := available(memcachedNamed("cache"), outcome{deployment: deployment, deploymentErr: test.failure})
			g.Expect(condition.Status).To(Equal(test.want))
			g.Expect(condition.Reason).To(Equal(test.reason))
			g.Expect(condition.Message).To(ContainSubstring(test.message))
			g.Expect(condition.ObservedGeneration).To(BeEquivalentTo(3))
		})
	}
}

func TestProgressingAndDegraded(t *testing.T) {
	tests := map[string]struct {
		status      appsv1.DeploymentStatus
		failure     error
		progressing metav1.ConditionStatus
		degraded    metav1.ConditionStatus
		message     string // of Degraded
	}{
		"all there": {
			status:      appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3},
			progressing: metav1.ConditionFalse, degraded: metav1.ConditionFalse,
		},
		"all there, whatever was refused on the way": {
			status:      appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, Conditions: refused},
			progressing: metav1.ConditionFalse, degraded: metav1.ConditionFalse,
		},
		"before the last change": {
			status:      appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3},
			progressing: metav1.ConditionTrue, degraded: metav1.ConditionFalse,
		},
		"Pods that start": {
			status:      appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 1},
			progressing: metav1.ConditionTrue, degraded: metav1.ConditionFalse,
		},
		"Pods of the template of before": {
			status:      appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 3},
			progressing: metav1.ConditionTrue, degraded: metav1.ConditionFalse,
		},
		"Pods too many": {
			status:      appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 3, AvailableReplicas: 3},
			progressing: metav1.ConditionTrue, degraded: metav1.ConditionFalse,
		},
		"Pods refused": {
			status:      appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: refused},
			progressing: metav1.ConditionFalse, degraded: metav1.ConditionTrue, message: "exceeded quota",
		},
		"a failure": {
			failure:     errors.New("create Deployment: no"),
			progressing: metav1.ConditionFalse, degraded: metav1.ConditionTrue, message: "create Deployment: no",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached := memcachedNamed("cache")
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Generation: 2},
				Spec:       appsv1.DeploymentSpec{Replicas: &memcached.Spec.Size},
				Status:     test.status,
			}
			if test.failure != nil {
				deployment = nil
			}
			o := outcome{deployment: deployment, deploymentErr: test.failure}
			condition := progressing(memcached, o)
			g.Expect(condition.Status).To(Equal(test.progressing))
			g.Expect(condition.ObservedGeneration).To(BeEquivalentTo(3))
			condition = degraded(memcached, o)
			g.Expect(condition.Status).To(Equal(test.degraded))
			g.Expect(condition.Message).To(ContainSubstring(test.message))
			g.Expect(condition.ObservedGeneration).To(BeEquivalentTo(3))
		})
	}
}

// newRefusing returns a pass of Reconcile over a Memcached whose Deployment the
// API server does not accept, and what comes of it: conditions and events.
func newRefusing(refusal func() error) (pass func() error, status func() []metav1.Condition, recorder *events.FakeRecorder) {
	memcached := memcachedNamed("cache")
	cluster := fake.NewClientBuilder().WithScheme(testScheme).WithObjects(memcached).WithStatusSubresource(memcached).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal() },
		}).Build()
	recorder = events.NewFakeRecorder(10)
	reconciler := &MemcachedReconciler{Client: cluster, Scheme: testScheme, Image: "memcached:1", Recorder: recorder}
	pass = func() error {
		_, err := reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(memcached)})
		return err
	}
	status = func() []metav1.Condition {
		now := &cachev1alpha1.Memcached{}
		if err := cluster.Get(context.Background(), client.ObjectKeyFromObject(memcached), now); err != nil {
			panic(err)
		}
		return now.Status.Conditions
	}
	return pass, status, recorder
}

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

func TestRefusedDeploymentIsReportedOnceAndRetried(t *testing.T) {
	g := NewWithT(t)
	used := 0
	pass, status, recorder := newRefusing(func() error {
		used++ // a quota tells how much of it is used, so its message changes
		return apierrors.NewForbidden(deployments, "cache", fmt.Errorf("%d used, %s", used, strings.Repeat("too long for an event ", 100)))
	})

	for range 3 {
		g.Expect(pass()).To(Satisfy(apierrors.IsForbidden), "the error makes another pass")
	}
	g.Expect(meta.IsStatusConditionFalse(status(), conditionAvailable)).To(BeTrue())
	g.Expect(recorder.Events).To(HaveLen(1))
	event := <-recorder.Events
	g.Expect(event).To(HavePrefix("Warning ReconcileFailed create Deployment: "))
	g.Expect(len(event)).To(BeNumerically("<=", maxNote+len("Warning ReconcileFailed ")))
}

func TestStalePassReportsNothing(t *testing.T) {
	terminating := apierrors.NewForbidden(deployments, "cache", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, refusal := range map[string]error{
		"already exists":        apierrors.NewAlreadyExists(deployments, "cache"),
		"namespace terminating": terminating,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pass, status, recorder := newRefusing(func() error { return refusal })
			g.Expect(pass()).To(Succeed())
			g.Expect(status()).To(BeEmpty())
			g.Expect(recorder.Events).To(BeEmpty())
		})
	}
}

func TestDegradedTellsAllProblemsAndAWarningFollowsItsReason(t *testing.T) {
	g := NewWithT(t)
	memcached, recorder := memcachedNamed("cache"), events.NewFakeRecorder(10)
	r := &MemcachedReconciler{Recorder: recorder}
	r.Client = fake.NewClientBuilder().WithScheme(testScheme).WithObjects(memcached).WithStatusSubresource(memcached).Build()
	o := outcome{deployment: deploymentFor(memcached, "memcached:1")}
	o.deployment.Status.AvailableReplicas = 3
	for _, problem := range []func(){
		func() {},
		func() { o.optionsErr = &terminalError{reasonConfigMapInvalid, "no ConfigMap"} },
		func() { o.registryErr = registry.ErrUnavailable },
		func() { o.serviceErr = &terminalError{reasonServiceConflict, "a Service"} },
	} {
		problem()
		g.Expect(r.updateStatus(context.Background(), memcached, o)).To(Succeed())
	}
	g.Expect(meta.IsStatusConditionTrue(memcached.Status.Conditions, conditionAvailable)).To(BeTrue())
	g.Expect(meta.FindStatusCondition(memcached.Status.Conditions, conditionDegraded).Message).To(
		Equal("a Service; no ConfigMap; the registry is unavailable"))
	g.Expect(recorder.Events).To(HaveLen(2))
	g.Expect(<-recorder.Events).To(HavePrefix("Warning ConfigMapInvalid no ConfigMap"))
	g.Expect(<-recorder.Events).To(HavePrefix("Warning ServiceConflict a Service; no ConfigMap"))
	g.Expect(r.resultFor(o)).Error().To(MatchError(registry.ErrUnavailable), "the only error that another pass can solve")
}

func TestOnlyWhatFreesANameStartsAPass(t *testing.T) {
	g := NewWithT(t)
	memcached := memcachedNamed("cache")
	r := &MemcachedReconciler{Client: fake.NewClientBuilder().WithScheme(testScheme).WithObjects(memcached).Build(), Scheme: testScheme}
	foreign, stranger := deploymentFor(memcached, "memcached:1"), deploymentFor(memcachedNamed("other"), "memcached:1")
	own := foreign.DeepCopy()
	g.Expect(controllerutil.SetControllerReference(memcached, own, testScheme)).To(Succeed())
	g.Expect(r.mapToSameName(context.Background(), foreign)).To(HaveLen(1))
	g.Expect(r.mapToSameName(context.Background(), stranger)).To(BeEmpty())
	g.Expect(r.mapToSameName(context.Background(), own)).To(BeEmpty())

	scaled := foreign.DeepCopy()
	scaled.Spec.Replicas = new(int32(1))
	g.Expect(freesName().Update(event.UpdateEvent{ObjectOld: foreign, ObjectNew: scaled})).To(BeFalse())
	g.Expect(freesName().Update(event.UpdateEvent{ObjectOld: foreign, ObjectNew: own})).To(BeTrue())
	g.Expect(freesName().Create(event.CreateEvent{Object: foreign})).To(BeFalse())
	g.Expect(freesName().Delete(event.DeleteEvent{Object: foreign})).To(BeTrue())
}

func TestServiceWithClusterIPIsReplaced(t *testing.T) {
	g := NewWithT(t)
	memcached := memcachedNamed("cache")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cache"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}}
	g.Expect(controllerutil.SetControllerReference(memcached, service, testScheme)).To(Succeed())
	r := &MemcachedReconciler{Client: fake.NewClientBuilder().WithScheme(testScheme).WithObjects(service).Build(), Scheme: testScheme}
	for range 2 {
		g.Expect(r.ensureService(context.Background(), memcached)).To(Succeed())
	}
	g.Expect(r.Get(context.Background(), client.ObjectKeyFromObject(service), service)).To(Succeed())
	g.Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
}

func TestSetupNeedsAnImage(t *testing.T) {
	NewWithT(t).Expect((&MemcachedReconciler{}).SetupWithManager(nil)).To(MatchError(ContainSubstring("MEMCACHED_IMAGE")))
}
