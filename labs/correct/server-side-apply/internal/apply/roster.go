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
	// listed is the finalizer of a Memcached that may be on the roster.
	listed = "roster.example.com/listed"
	// round is how often each Memcached is gone to. What went wrong is tried again in the next one.
	round = 3 * time.Second
	// respite is how long a row that was rejected is not sent again. Somebody may have changed the mind of the registry.
	respite = 5 * time.Second
)

// Roster is the registry of caches outside the cluster.
type Roster struct {
	URL      string
	rejected sync.Map // of uids: the last rejection
}

// rejection is of the row of a generation, until a time.
type rejection struct {
	generation int64
	until      time.Time
}

type row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Size      int32  `json:"size"`
}

// caller takes an answer that leads elsewhere for none.
var caller = &http.Client{
	Timeout:       3 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// call returns the status of the answer, and reads its body into the row if there is one.
func (s *Roster) call(ctx context.Context, method string, uid types.UID, body []byte, into *row) (int, error) {
	address, err := url.JoinPath(s.URL, "caches", string(uid))
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	response, err := caller.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if into != nil && response.StatusCode == http.StatusOK {
		_ = json.NewDecoder(io.LimitReader(response.Body, 1<<12)).Decode(into) // Nonsense is another row than ours.
	}
	return response.StatusCode, nil
}

// list puts a Memcached on the roster unless it reads there as it should, and returns what to say of it.
func (s *Roster) list(ctx context.Context, memcached *cachev1alpha1.Memcached) metav1.Condition {
	is := metav1.Condition{Type: "Registered", Status: metav1.ConditionFalse, Reason: "RowRejected", Message: "The registry does not take this row"}
	if last, ok := s.rejected.Load(memcached.UID); ok {
		if last := last.(rejection); last.generation == memcached.Generation && time.Now().Before(last.until) {
			return is
		}
	}
	want, have := row{memcached.Namespace, memcached.Name, memcached.Spec.Size}, row{}
	body, err := json.Marshal(want)
	status := 0
	if err == nil {
		status, err = s.call(ctx, http.MethodGet, memcached.UID, nil, &have)
	}
	if err == nil && (status != http.StatusOK || have != want) {
		status, err = s.call(ctx, http.MethodPut, memcached.UID, body, nil)
	}
	switch {
	case err == nil && status/100 == 2:
		is.Status, is.Reason, is.Message = metav1.ConditionTrue, "OnTheRoster", ""
	case err == nil && status == http.StatusUnprocessableEntity:
		s.rejected.Store(memcached.UID, rejection{memcached.Generation, time.Now().Add(respite)})
	default: // The words of the error may be others each time, so they are for the log and not for the status.
		ctrl.LoggerFrom(ctx).Info("The roster is not to be had", "status", status, "error", err)
		is.Status, is.Reason, is.Message = metav1.ConditionUnknown, "RosterOutOfReach", "There will be another try"
	}
	return is
}

// pledge applies the finalizer and nothing else. Finalizers are a set, to which an apply adds; those of others stay theirs.
func (r *Reconciler) pledge(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	pledge := cachev1alpha1ac.Memcached(memcached.Name, memcached.Namespace).WithUID(memcached.UID).WithFinalizers(listed)
	if err := r.Apply(ctx, pledge, client.FieldOwner(Owner)); err != nil {
		return fmt.Errorf("apply finalizer: %w", err)
	}
	return nil
}

// unlist takes a Memcached off the roster, and lets it go. An apply that leaves the finalizer out would take it away only from
// who owns it, but it may have come with the Memcached from somebody's backup. Hence a patch.
func (r *Reconciler) unlist(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	base := memcached.DeepCopy()
	if !controllerutil.RemoveFinalizer(memcached, listed) {
		return nil // What was made for it is the garbage collector's.
	}
	if r.Roster == nil {
		return fmt.Errorf("%s is still on the roster, and REGISTRY_URL is not set", memcached.Name)
	}
	status, err := r.Roster.call(ctx, http.MethodDelete, memcached.UID, nil, nil)
	if err != nil || status/100 != 2 && status != http.StatusNotFound {
		ctrl.LoggerFrom(ctx).Info("The roster does not let go", "status", status, "error", err)
		return nil // Until the next round.
	}
	r.Roster.rejected.Delete(memcached.UID)
	return r.Patch(ctx, memcached, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), client.FieldOwner(Owner))
}

// rounds brings all Memcacheds back into the queue, again and again: nobody tells what others do to the roster.
func (r *Reconciler) rounds(ctx context.Context, turns chan<- event.GenericEvent) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(round):
		}
		var all cachev1alpha1.MemcachedList
		if err := r.List(ctx, &all); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list Memcacheds")
		}
		for i := range all.Items {
			select {
			case <-ctx.Done():
				return nil
			case turns <- event.GenericEvent{Object: &all.Items[i]}:
			}
		}
	}
}
