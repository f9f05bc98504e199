package apiproxy

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Outage is the resource that the API server refuses all writes of, as when an admission webhook for it fails. Reads and watches
// go on.
type Outage string

const (
	// NoOutage refuses nothing.
	NoOutage Outage = ""
	// NoDeployments refuses writes of Deployments.
	NoDeployments Outage = "deployments"
	// NoMemcacheds refuses writes of Memcacheds and their status.
	NoMemcacheds Outage = "memcacheds"
)

// refusal is the API server's answer to a request during the outage, nil if it serves the request.
func (o Outage) refusal(r Request) *apierrors.StatusError {
	if o == NoOutage || !r.Mutating() || r.Resource != string(o) {
		return nil
	}
	return apierrors.NewInternalError(errors.New("failed calling webhook: context deadline exceeded"))
}

// Disturbance acts before and after requests. Both functions may be nil, and are called from many goroutines at once.
type Disturbance struct {
	// Before is called ahead of each request, which waits for it. True says that it did something which the API server may
	// answer with a conflict; such an answer is marked as Disturbed.
	Before func(context.Context, Request) bool
	// After is called when the API server has answered, and the client has not heard of it yet.
	After func(Request)
}

// Disturb applies d to all requests from now on. The zero Disturbance ends it.
func (p *Proxy) Disturb(d Disturbance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disturbance = d
}

// Outage has the API server refuse writes from now on. [NoOutage] ends it.
func (p *Proxy) Outage(kind Outage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outage = kind
}

// disturbances are those of this moment.
func (p *Proxy) disturbances() (Disturbance, Outage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disturbance, p.outage
}
