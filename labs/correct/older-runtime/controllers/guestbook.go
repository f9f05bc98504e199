package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cache "example.org/caching/pkg/apis/cache/v1alpha1"
)

// GuestBook is the registry outside the cluster: who comes is entered, and who has said goodbye is crossed out.
type GuestBook struct {
	URL string
}

const (
	// visit is how often the book is opened for a guest, and the longest pause after a failure of any kind.
	visit = 4 * time.Second
	// patience is for one answer.
	patience = 2500 * time.Millisecond
)

// pen does not follow where it is led: the same request elsewhere is another one.
var pen = http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (b *GuestBook) open(ctx context.Context, method string, mc *cache.Memcached, body io.Reader) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(b.URL, "/")+"/caches/"+string(mc.UID), body)
	if err != nil {
		return 0, err
	}
	resp, err := pen.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// crossOut takes a guest out of the book, if there is one.
func (b *GuestBook) crossOut(ctx context.Context, mc *cache.Memcached) error {
	if b == nil {
		return nil
	}
	code, err := b.open(ctx, http.MethodDelete, mc, nil)
	if err == nil && code != http.StatusNotFound && code/100 != 2 {
		err = fmt.Errorf("the guest book keeps its entry, with %d", code)
	}
	return err
}

// errUnwelcome says that the book will not have a guest.
var errUnwelcome = errors.New("the guest book does not take it")

func (b *GuestBook) enter(ctx context.Context, mc *cache.Memcached) error {
	body, err := json.Marshal(map[string]any{"namespace": mc.Namespace, "name": mc.Name, "size": mc.Spec.Size})
	if err != nil {
		return err
	}
	code, err := b.open(ctx, http.MethodPut, mc, strings.NewReader(string(body)))
	switch {
	case err != nil || code/100 == 2:
		return err
	case code == http.StatusUnprocessableEntity:
		return errUnwelcome
	}
	return fmt.Errorf("the guest book answers %d", code)
}

// enter begins to enter a Memcached. The servers are seen to meanwhile, and whoever asks for the answer waits for it. It has
// to be asked for before the pass is over: what is still under way must not come after a goodbye.
func (k *Keeper) enter(ctx context.Context, mc *cache.Memcached) (answer func() error) {
	if k.Guests == nil {
		return func() error { return nil }
	}
	if answered(mc, metav1.ConditionFalse, "Unwelcome") {
		return func() error { return errUnwelcome } // until it is another one
	}
	guest, heard, said := mc.DeepCopy(), make(chan struct{}), error(nil)
	go func() {
		defer close(heard)
		said = k.Guests.enter(ctx, guest)
	}()
	return func() error { <-heard; return said }
}

// note sets what became of the entry. Why the book is out of reach goes into the log: it may be worded otherwise each time,
// and the status is to change only when something has.
func (k *Keeper) note(mc *cache.Memcached, err error) {
	switch {
	case k.Guests == nil:
	case err == nil:
		set(mc, "Registered", metav1.ConditionTrue, "Entered", "")
	case errors.Is(err, errUnwelcome):
		set(mc, "Registered", metav1.ConditionFalse, "Unwelcome", err.Error())
	default:
		set(mc, "Registered", metav1.ConditionFalse, "BookClosed", "It will be tried again.")
	}
}

// answered says whether this was the answer to the wish as it is now.
func answered(mc *cache.Memcached, status metav1.ConditionStatus, reason string) bool {
	c := find(mc, "Registered")
	return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == mc.Generation
}

// refresh reads a Memcached from the API server itself, unless it is known to be entered. The cache may not have heard yet
// that it is unwelcome, and whoever is must not be brought again.
func (k *Keeper) refresh(ctx context.Context, mc *cache.Memcached) error {
	if k.Guests == nil || answered(mc, metav1.ConditionTrue, "Entered") {
		return nil
	}
	var now cache.Memcached // Reading into one that is filled would keep what is not there any more.
	err := k.Live.Get(ctx, client.ObjectKeyFromObject(mc), &now)
	*mc = now
	return err
}
