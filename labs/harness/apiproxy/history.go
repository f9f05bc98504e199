package apiproxy

import (
	"cmp"
	"maps"
	"slices"
)

// Tally is how often one kind of request was sent.
type Tally struct {
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Requests counts all of them, Refused those that [Request.Refused].
	Requests int `json:"requests"`
	Refused  int `json:"refused"`
}

// add gives the request its index and keeps it.
func (p *Proxy) add(r Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Index = len(p.requests)
	p.requests = append(p.requests, r)
}

// Since gives the requests from index on, in order.
func (p *Proxy) Since(index int) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests[min(max(0, index), len(p.requests)):])
}

// Count is how many requests there were. It is the index of the next one.
func (p *Proxy) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// Tallies are how often each kind of request was sent.
func (p *Proxy) Tallies() []Tally {
	kinds := map[Tally]Tally{} // by kind, which is a tally without numbers
	for _, r := range p.Since(0) {
		kind := Tally{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource}
		t := cmp.Or(kinds[kind], kind)
		t.Requests++
		if r.Refused() {
			t.Refused++
		}
		kinds[kind] = t
	}
	return slices.SortedFunc(maps.Values(kinds), func(a, b Tally) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Verb, b.Verb))
	})
}
