package outside

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// create makes a Memcached.
func create(ctx context.Context, m env.Memcached) cache {
	GinkgoHelper()
	Expect(m.Create(ctx)).To(Succeed())
	obj, err := m.Get(ctx)
	Expect(err).To(Succeed())
	return cache{m, string(obj.GetUID())}
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
	return env.Polled(func(context.Context) (map[string]registry.Entry, error) {
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
	if last.Status <= 0 {
		return "the last request was " + last.Method + ", and it has no answer"
	}
	return fmt.Sprintf("the last request was %s, and the answer %d", last.Method, last.Status)
}

// isRemoved wants none under the UID of the Memcached.
func isRemoved(c cache, cause string) error {
	if _, there := env.Registry().Entries()[c.uid]; there {
		return finding.New(cause, "no entry for the Memcached "+c.Name+", which was deleted", "it is still in the registry; %s", lastRequest(c))
	}
	return nil
}

// isStillThere wants a Memcached that is being deleted to be there as long as its entry is. A cache that is behind can have an
// operator send one DELETE more, which removes nothing.
func isStillThere(ctx context.Context, c cache, cause string) error {
	if _, there := env.Registry().Entries()[c.uid]; !there {
		return nil
	}
	obj, err := c.Get(ctx)
	if apierrors.IsNotFound(err) || err == nil && string(obj.GetUID()) != c.uid {
		return finding.New(cause, "the Memcached stays until its entry is removed", "it is gone")
	}
	return err
}

// hasFinalizer wants a Memcached to have one when a PUT comes for it.
func hasFinalizer(ctx context.Context, m env.Memcached) error {
	obj, err := m.Get(ctx)
	if err == nil && len(obj.GetFinalizers()) == 0 {
		err = finding.New("no-finalizer", "a Memcached has a finalizer before it is registered", "it had none when the PUT came")
	}
	return err
}

// loseItsFinalizer wants a Memcached without the operator's finalizer: with that of the check at most, or none.
func loseItsFinalizer() *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		if all := obj.GetFinalizers(); len(all) > 1 {
			return finding.New("memcached-stuck",
				"the operator takes its finalizer away when the entry is gone", "finalizers %s", strings.Join(all, ", "))
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

// haveStatus wants a Memcached whose status was written, and does not say that it has an entry, as the registry was away all the
// time.
func haveStatus() *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		const expected = "the status tells of the Deployment, and not that there is an entry, while the registry is away"
		switch registered := env.Condition(obj, "Registered"); {
		case env.Condition(obj, "Available") == nil:
			return finding.New("not-told", expected, "there is no condition Available")
		case registered != nil && registered.Status == metav1.ConditionTrue:
			return finding.New("registered-too-early", expected, "Registered is True (%s: %s)", registered.Reason, registered.Message)
		}
		return nil
	})
}

// behave has the registry behave in a way until the returned function is called, or the check ends.
func behave(uid string, b registry.Behaviour) (end func()) {
	r := env.Registry()
	r.Behave(uid, b)
	end = func() { r.Behave(uid, registry.Behaviour{}) }
	DeferCleanup(end)
	return end
}

// onRequest calls act for each request of a method, before the registry does what is asked. The returned function says what went
// wrong so far.
func onRequest(uid, method string, act func(context.Context, registry.Request) error) (wrong func() error) {
	var mu sync.Mutex
	var all error
	behave(uid, registry.Behaviour{Only: method, Meanwhile: func(ctx context.Context, q registry.Request) {
		mu.Lock()
		defer mu.Unlock()
		all = cmp.Or(all, act(ctx, q))
	}})
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// wasServedDuring wants the first PUT for another Memcached to have come while the last request for the slow one was open. An
// operator that does one after the other sends none then, also if it gives up early.
func wasServedDuring(slow, other cache) error {
	all := env.Registry().Requests(slow.uid)
	if last := all[len(all)-1]; last.Ended.IsZero() && last.Began.Before(env.Registry().Requests(other.uid)[0].Began) {
		return nil
	}
	return finding.New("blocked-by-slow-call",
		"another Memcached is registered while the registry takes its time", "that request ended first").TooLate()
}

// puts counts the requests that the registry take an entry.
func puts(c cache) (n int) {
	for _, q := range env.Registry().Requests(c.uid) {
		if q.Method == http.MethodPut {
			n++
		}
	}
	return n
}
