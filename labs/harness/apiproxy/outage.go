package apiproxy

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Outage is a kind of write that the API server refuses. Reads and watches go on.
type Outage int

const (
	// NoOutage refuses nothing.
	NoOutage Outage = iota
	// ReadOnly refuses all writes, as when etcd has no leader.
	ReadOnly
	// NoDeployments refuses writes of Deployments, as when an admission webhook for them fails.
	NoDeployments
	// NoMemcacheds is the same for Memcacheds and their status.
	NoMemcacheds
)

// String says what the API server does during the outage.
func (o Outage) String() string {
	return [...]string{
		"there", "without a store to write to (500)", "refusing all writes of Deployments (500)", "refusing all writes of Memcacheds (500)",
	}[o]
}

// refusal is the API server's answer to a request during the outage, nil if it serves the request.
func (o Outage) refusal(r Request) *apierrors.StatusError {
	switch {
	case !r.Mutating():
		return nil
	case o == ReadOnly:
		return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	case o == NoDeployments && r.Group == "apps" && r.Resource == "deployments", o == NoMemcacheds && r.Resource == "memcacheds":
		return apierrors.NewInternalError(errors.New("failed calling webhook: context deadline exceeded"))
	}
	return nil
}

// Disturbance acts before and after requests. Both functions may be nil, and are called from many goroutines at once.
type Disturbance struct {
	// Before is called ahead of each request, which waits for it. True says that it did something which the API server may
	// answer with a conflict; such an answer is marked as Disturbed.
	Before func(context.Context, Request) bool
	// After is called when the API server has answered, and the client has not heard of it yet.
	After func(Request)
}

// disturbances are what a check has asked for.
type disturbances struct {
	mu          sync.Mutex
	disturbance Disturbance
	outage      Outage
	until       time.Time
}

// Disturb applies d to all requests from now on. The zero Disturbance ends it.
func (p *Proxy) Disturb(d Disturbance) {
	p.disturbances.mu.Lock()
	defer p.disturbances.mu.Unlock()
	p.disturbances.disturbance = d
}

// Outage has the API server refuse writes for a while, beginning now. It does not wait for the end. NoOutage ends it early.
func (p *Proxy) Outage(kind Outage, lasts time.Duration) {
	p.disturbances.mu.Lock()
	defer p.disturbances.mu.Unlock()
	p.disturbances.outage, p.disturbances.until = kind, time.Now().Add(lasts)
}

// now are the disturbance and the outage of this moment.
func (d *disturbances) now() (Disturbance, Outage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().After(d.until) {
		d.outage = NoOutage
	}
	return d.disturbance, d.outage
}
