// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/registry"
)

// outside is a registry that answers with status, and writes down each request
// with the number of finalizers that the Memcached has meanwhile.
type outside struct {
	status   int
	heard    []string
	cluster  client.Client
	pass     func() (ctrl.Result, error)
	recorder *events.FakeRecorder
	memcache *cachev1alpha1.Memcached
}

func newOutside(t *testing.T) *outside {
	o := &outside{status: http.StatusNoContent, memcache: memcachedNamed("cache"), recorder: events.NewFakeRecorder(100)}
	o.memcache.UID = "uid-of-cache"
	o.cluster = fake.NewClientBuilder().WithScheme(testScheme).WithObjects(o.memcache).WithStatusSubresource(o.memcache).Build()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now, err := o.now()
		if err != nil {
			t.Errorf("the Memcached is not there: %v", err)
		}
		o.heard = append(o.heard, fmt.Sprintf("%s %s, finalizers: %d", r.Method, r.URL.Path, len(now.Finalizers)))
		w.WriteHeader(o.status)
	}))
	t.Cleanup(server.Close)
	reconciler := &MemcachedReconciler{
		Client: o.cluster, Scheme: testScheme, Image: "memcached:1", Recorder: o.recorder, Registry: registry.New(server.URL),
	}
	o.pass = func() (ctrl.Result, error) {
		return reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o.memcache)})
	}
	return o
}

func (o *outside) now() (*cachev1alpha1.Memcached, error) {
	now := &cachev1alpha1.Memcached{}
	return now, o.cluster.Get(context.Background(), client.ObjectKeyFromObject(o.memcache), now)
}

func TestFinalizerPrecedesPutAndFollowsDelete(t *testing.T) {
	g := NewWithT(t)
	o := newOutside(t)
	result, err := o.pass()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(resyncInterval))
	g.Expect(o.heard).To(ConsistOf("PUT /caches/uid-of-cache, finalizers: 1"))

	g.Expect(o.cluster.Delete(context.Background(), o.memcache)).To(Succeed())
	o.heard, o.status, o.recorder.Events = nil, http.StatusServiceUnavailable, make(chan string, 10)
	_, err = o.pass()
	g.Expect(err).To(MatchError(ContainSubstring("503")))
	now, err := o.now()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(meta.FindStatusCondition(now.Status.Conditions, conditionDegraded).Reason).To(Equal(reasonRegistryUnavailable))
	g.Expect(o.recorder.Events).To(Receive(HavePrefix("Warning RegistryUnavailable")))
	o.status = http.StatusNotFound // somebody else was here
	_, err = o.pass()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.heard).To(HaveExactElements("DELETE /caches/uid-of-cache, finalizers: 1", "DELETE /caches/uid-of-cache, finalizers: 1"))
	_, err = o.now()
	g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
	g.Expect(err).To(HaveOccurred())
}

func TestRefusedEntryIsRetriedWhenTheSpecChanges(t *testing.T) {
	g := NewWithT(t)
	o := newOutside(t)
	o.status = http.StatusUnprocessableEntity
	for range 3 {
		_, err := o.pass()
		g.Expect(err).To(MatchError(reconcile.TerminalError(nil)))
	}
	g.Expect(o.heard).To(HaveLen(1))
	now, err := o.now()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(meta.FindStatusCondition(now.Status.Conditions, conditionRegistered).Reason).To(Equal(reasonRegistryRefused))

	now.Generation++
	g.Expect(o.cluster.Update(context.Background(), now)).To(Succeed())
	o.status = http.StatusNoContent
	_, err = o.pass()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.heard).To(HaveLen(2))
	now, err = o.now()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(meta.IsStatusConditionTrue(now.Status.Conditions, conditionRegistered)).To(BeTrue())
}

// A message that changes each time would change the status, and start a pass, each time.
func TestEqualFailuresOfTheRegistryGiveEqualMessages(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(connection.(*net.TCPConn).SetLinger(0)).To(Succeed()) // a reset, which the other side is told with its port
		g.Expect(connection.Close()).To(Succeed())
	}))
	t.Cleanup(server.Close)
	away := registry.New(server.URL)
	first := away.Delete(context.Background(), "uid")
	g.Expect(first).To(MatchError(ContainSubstring("reset")))
	g.Expect(away.Delete(context.Background(), "uid")).To(MatchError(first.Error()))
}
