package outside

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/finding"
)

// cache is a Memcached with the UID that its entry has.
type cache struct {
	env.Memcached
	uid string
}

// find reads the UID of a Memcached.
func find(ctx context.Context, m env.Memcached) cache {
	GinkgoHelper()
	obj, err := m.Get(ctx)
	Expect(err).To(Succeed())
	return cache{m, string(obj.GetUID())}
}

// withOnePod is a Memcached with the fewest Pods to wait for.
func withOnePod(namespace string) env.Memcached {
	m := env.NewMemcached(namespace)
	m.Size = 1
	return m
}

// create makes a Memcached.
func create(ctx context.Context, m env.Memcached) cache {
	GinkgoHelper()
	Expect(m.Create(ctx)).To(Succeed())
	return find(ctx, m)
}

// register makes a Memcached, and waits for its entry. Its Deployment may come later.
func register(ctx context.Context, m env.Memcached) cache {
	GinkgoHelper()
	c := create(ctx, m)
	Eventually(ctx, entriesOf(c)).Should(haveItsEntry(c))
	return c
}

// entriesOf reads, when it is polled, all entries that are about a Memcached: those under its UID or with its name.
func entriesOf(c cache) func(context.Context) (map[string]registry.Entry, error) {
	return env.Polled(c.Namespace, func(context.Context) (map[string]registry.Entry, error) {
		entries := env.Registry().Entries()
		for uid, e := range entries {
			if uid != c.uid && (e.Namespace != c.Namespace || e.Name != c.Name) {
				delete(entries, uid)
			}
		}
		return entries, nil
	})
}

// haveItsEntry wants exactly one entry, under the UID of the Memcached, with its name and size.
func haveItsEntry(c cache) *match.Matcher {
	want := registry.Entry{Namespace: c.Namespace, Name: c.Name, Size: c.Size}
	expected := fmt.Sprintf("one entry in the registry, under the UID %s: %+v", c.uid, want)
	return match.Make(func(entries map[string]registry.Entry) error {
		have, there := entries[c.uid]
		for uid, other := range entries {
			if uid != c.uid {
				return finding.New("wrong-uid", expected, "one under %q: %+v", uid, other)
			}
		}
		switch {
		case !there:
			return finding.New("no-entry", expected, "none; %s", lastRequest(c))
		case have.Size != want.Size:
			return finding.New("wrong-size", expected, "%+v", have)
		case have != want:
			return finding.New("wrong-entry", expected, "%+v", have)
		}
		return nil
	})
}

// lastRequest says what the registry was asked last for a Memcached.
func lastRequest(c cache) string {
	requests := env.Registry().Requests(c.uid)
	if len(requests) == 0 {
		return "no request came for it"
	}
	last := requests[len(requests)-1]
	switch {
	case last.Ended.IsZero():
		return fmt.Sprintf("the last request was %s, and there is no answer yet", last.Method)
	case last.Status == registry.BreakOff:
		return fmt.Sprintf("the last request was %s, and the registry broke the connection off", last.Method)
	}
	return fmt.Sprintf("the last request was %s, and the answer %d", last.Method, last.Status)
}

// haveNoEntry wants none under the UID of the Memcached.
func haveNoEntry(c cache, cause string) *match.Matcher {
	return match.Make(func(map[string]registry.Entry) error { return isRemoved(c, cause) })
}

// isRemoved asks [haveNoEntry] once.
func isRemoved(c cache, cause string) error {
	if _, there := env.Registry().Entries()[c.uid]; there {
		return finding.New(cause, "no entry for the Memcached "+c.Name+", which was deleted", "it is still in the registry; %s", lastRequest(c))
	}
	return nil
}

// stay wants a Memcached that is being deleted to be there all the same.
func stay(cause string) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		if obj.GetUID() == "" {
			return finding.New(cause, "the Memcached "+obj.GetName()+" stays until nobody needs it any more", "it is gone")
		}
		return nil
	})
}

// letGo wants a Memcached without the operator's finalizer: with that of the check at most, or none.
func letGo() *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		if all := obj.GetFinalizers(); len(all) > 1 {
			return finding.New("memcached-stuck", "the operator takes its finalizer away when the entry is gone", "finalizers %s", strings.Join(all, ", "))
		}
		return nil
	})
}

// beAvailable wants Available to be True, whatever the registry says.
func beAvailable() *match.Matcher {
	return match.HaveCondition("Available", metav1.ConditionTrue).Because("not-available")
}

// beRegistered wants the condition Registered to have a status.
func beRegistered(status metav1.ConditionStatus) *match.Matcher {
	return match.HaveCondition("Registered", status).Because("not-told")
}

// sayWhatIsKnown wants a Memcached whose status was written, and does not say that it has an entry: the registry was away all the
// time.
func sayWhatIsKnown(obj *unstructured.Unstructured) error {
	const expected = "the status tells of the Deployment, and not that there is an entry, while the registry is away"
	available, err := env.Condition(obj, "Available")
	if err == nil && available == nil {
		return finding.New("not-told", expected, "there is no condition Available")
	}
	if err != nil {
		return err
	}
	registered, err := env.Condition(obj, "Registered")
	if err == nil && registered != nil && registered.Status == metav1.ConditionTrue {
		err = finding.New("registered-too-early", expected, "Registered is True (%s: %s)", registered.Reason, registered.Message)
	}
	return err
}

// behave has the registry behave in a way until the returned function is called, or the check ends.
func behave(uid string, b registry.Behaviour) (end func()) {
	r := env.Registry()
	r.Behave(uid, b)
	end = func() { r.Behave(uid, registry.Behaviour{}) }
	DeferCleanup(end)
	return end
}

// onPut calls act for each PUT that is about a Memcached, whatever its entry says, with the Memcached as it is then and before the
// entry is made. The returned function says what went wrong so far.
func onPut(m env.Memcached, act func(*unstructured.Unstructured) error) (wrong func() error) {
	return watch(registry.Everybody, http.MethodPut, func(ctx context.Context, q registry.Request) error {
		obj, err := m.Get(ctx)
		if err != nil || string(obj.GetUID()) != q.UID {
			return client.IgnoreNotFound(err)
		}
		return act(obj)
	})
}

// hasFinalizer wants a Memcached to have a finalizer when a PUT comes for it.
func hasFinalizer(obj *unstructured.Unstructured) error {
	if len(obj.GetFinalizers()) == 0 {
		return finding.New("no-finalizer", "a Memcached has a finalizer before it is registered", "it had none when the PUT came")
	}
	return nil
}

// watchDeletion looks at a Memcached when its entry is about to be removed: it has to be there still. A cache that is behind can
// have an operator send one DELETE more, which removes nothing.
func watchDeletion(c cache) (wrong func() error) {
	return watch(c.uid, http.MethodDelete, func(ctx context.Context, _ registry.Request) error {
		if _, there := env.Registry().Entries()[c.uid]; !there {
			return nil
		}
		obj, err := c.Get(ctx)
		if apierrors.IsNotFound(err) || err == nil && string(obj.GetUID()) != c.uid {
			return finding.New("finalizer-removed-first", "the entry is removed while the Memcached is still there", "it was gone already when the DELETE came")
		}
		return err
	})
}

// watch looks at each request of a method that comes for a UID, until the check ends. The returned function says what was
// wrong so far.
func watch(uid, method string, look func(context.Context, registry.Request) error) (wrong func() error) {
	var mu sync.Mutex
	var all error
	behave(uid, registry.Behaviour{Only: method, Meanwhile: func(ctx context.Context, q registry.Request) {
		mu.Lock()
		defer mu.Unlock()
		all = cmp.Or(all, look(ctx, q))
	}})
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// slowDown has the registry take its time for a Memcached until the check ends. The channel is closed by the first request.
func slowDown(c cache) (asked <-chan struct{}) {
	first := make(chan struct{})
	tell := sync.OnceFunc(func() { close(first) })
	behave(c.uid, registry.Behaviour{Delay: slowness, Meanwhile: func(context.Context, registry.Request) { tell() }})
	return first
}

// wereServedMeanwhile wants at least one of the others to have had its first PUT answered while a request for the slow one was
// open, and well before that one was given up. An operator that does one after the other never has. One that gives up within twice
// [noticePeriod] holds up nobody, however it works.
func wereServedMeanwhile(slow cache, others []cache) error {
	waited := false
	for _, s := range env.Registry().Requests(slow.uid) {
		ended := cmp.Or(s.Ended, time.Now())
		waited = waited || ended.Sub(s.Began) > 2*noticePeriod
		for _, m := range others {
			if first := puts(m)[0]; s.Began.Before(first.Began) && first.Ended.Add(noticePeriod).Before(ended) {
				return nil
			}
		}
	}
	if !waited {
		return nil
	}
	return finding.New("blocked-by-slow-call", "other Memcacheds are registered while the registry takes its time for one", "none of %d was, before that one was answered or given up", len(others)).TooLate()
}

// restsFor wants at most one request a second.
func restsFor(period time.Duration, requests int) error {
	if most := int(period/time.Second) + 1; requests > most {
		return finding.New("too-many-requests", "at most one request a second for each entry at rest", "%d in %s", requests, period)
	}
	return nil
}

// puts are the requests that the registry take an entry.
func puts(c cache) []registry.Request {
	return slices.DeleteFunc(env.Registry().Requests(c.uid), func(q registry.Request) bool { return q.Method != http.MethodPut })
}

// triedAtMost wants an entry that was refused not to have been sent again and again.
func triedAtMost(c cache) error {
	all := puts(c)
	if len(all) == 0 {
		return finding.New("no-entry", "the registry is asked to take the entry", "no PUT came for it")
	}
	late := all[0].Began.Add(refusedPeriod)
	tries := len(slices.DeleteFunc(all, func(q registry.Request) bool { return q.Began.After(late) }))
	if tries > mostTries {
		return finding.New("asked-again", fmt.Sprintf("an entry that the registry refuses is sent at most %d times in %s", mostTries, refusedPeriod), "%d times", tries)
	}
	return nil
}
