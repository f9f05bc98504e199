package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	cachev1alpha1 "example.org/applied/api/v1alpha1"
	cachev1alpha1ac "example.org/applied/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

const (
	// finalizer keeps a Memcached that may have an entry in the registry.
	finalizer = "registry.example.com/entry"
	// resyncPeriod is how often each Memcached is reconciled. What failed is tried again then.
	resyncPeriod = 3 * time.Second
	// rejectionPeriod is how long an entry that was rejected is not sent again.
	rejectionPeriod = 5 * time.Second
)

// Registry is the registry of caches outside the cluster.
type Registry struct {
	URL      string
	rejected sync.Map // of uids: the last rejection
}

// rejection is that of the entry of a generation, and counts until a time.
type rejection struct {
	generation int64
	until      time.Time
}

type entry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Size      int32  `json:"size"`
}

// httpClient follows no redirect.
var httpClient = &http.Client{
	Timeout:       3 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// call returns the status of the answer, and reads its body into the entry if there is one.
func (r *Registry) call(ctx context.Context, method string, uid types.UID, body []byte, into *entry) (int, error) {
	address, err := url.JoinPath(r.URL, "caches", string(uid))
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if into != nil && response.StatusCode == http.StatusOK {
		_ = json.NewDecoder(io.LimitReader(response.Body, 1<<12)).Decode(into) // What is no entry differs from ours.
	}
	return response.StatusCode, nil
}

// register writes the entry of a Memcached unless it is right already, and returns the condition.
func (r *Registry) register(ctx context.Context, memcached *cachev1alpha1.Memcached) metav1.Condition {
	is := metav1.Condition{Type: "Registered", Status: metav1.ConditionFalse, Reason: "RejectedByRegistry", Message: "The registry does not take this entry"}
	if last, ok := r.rejected.Load(memcached.UID); ok {
		if last := last.(rejection); last.generation == memcached.Generation && time.Now().Before(last.until) {
			return is
		}
	}
	want, have := entry{memcached.Namespace, memcached.Name, memcached.Spec.Size}, entry{}
	body, err := json.Marshal(want)
	status := 0
	if err == nil {
		status, err = r.call(ctx, http.MethodGet, memcached.UID, nil, &have)
	}
	if err == nil && (status != http.StatusOK || have != want) {
		status, err = r.call(ctx, http.MethodPut, memcached.UID, body, nil)
	}
	switch {
	case err == nil && status/100 == 2:
		is.Status, is.Reason, is.Message = metav1.ConditionTrue, "EntryFound", ""
	case err == nil && status == http.StatusUnprocessableEntity:
		r.rejected.Store(memcached.UID, rejection{memcached.Generation, time.Now().Add(rejectionPeriod)})
	default: // The text of the error may change each time, so it is for the log and not for the status.
		ctrl.LoggerFrom(ctx).Info("Failed to update the registry", "status", status, "error", err)
		is.Status, is.Reason, is.Message = metav1.ConditionUnknown, "RegistryUnavailable", "The operator tries again"
	}
	return is
}

// applyFinalizer applies the finalizer and nothing else. Finalizers are a set, to which an apply adds; those of others stay theirs.
func (r *Reconciler) applyFinalizer(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	wanted := cachev1alpha1ac.Memcached(memcached.Name, memcached.Namespace).WithUID(memcached.UID).WithFinalizers(finalizer)
	if err := r.Apply(ctx, wanted, client.FieldOwner(Owner)); err != nil {
		return fmt.Errorf("apply finalizer: %w", err)
	}
	return nil
}

// unregister deletes the entry, and then removes the finalizer. It does so by a patch: an apply removes only what this field
// manager owns, and the Memcached may have come with the finalizer from a backup.
func (r *Reconciler) unregister(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	base := memcached.DeepCopy()
	if !controllerutil.RemoveFinalizer(memcached, finalizer) {
		return nil // The garbage collector deletes what was made for it.
	}
	if r.Registry == nil {
		return fmt.Errorf("%s may have an entry in a registry, and REGISTRY_URL is not set", memcached.Name)
	}
	status, err := r.Registry.call(ctx, http.MethodDelete, memcached.UID, nil, nil)
	if err != nil || status/100 != 2 && status != http.StatusNotFound {
		ctrl.LoggerFrom(ctx).Info("Failed to delete the entry", "status", status, "error", err)
		live, err := r.deployment(ctx, client.ObjectKeyFromObject(memcached))
		if err != nil {
			return err
		}
		return r.report(ctx, base, live, count(base, live), "the registry holds up the deletion") // The next resync tries again.
	}
	r.Registry.rejected.Delete(memcached.UID)
	return r.Patch(ctx, memcached, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), client.FieldOwner(Owner))
}

// resync enqueues all Memcacheds every resyncPeriod: there is no watch of the registry.
func (r *Reconciler) resync(ctx context.Context, queue chan<- event.GenericEvent) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(resyncPeriod):
		}
		var all cachev1alpha1.MemcachedList
		if err := r.List(ctx, &all); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list Memcacheds")
		}
		for i := range all.Items {
			select {
			case <-ctx.Done():
				return nil
			case queue <- event.GenericEvent{Object: &all.Items[i]}:
			}
		}
	}
}
