package apiproxy

import (
	"cmp"
	"maps"
	"slices"
)

// remembered is how many of the latest requests are kept at least. A run of an operator that does not loop sends fewer.
const remembered = 1 << 15

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

// history is what a proxy remembers: the latest requests, and how often each kind was sent.
type history struct {
	forgotten int // requests before those that are kept
	requests  []Request
	tallies   map[Tally]Tally // by kind, which is a tally without numbers
}

// add gives the request its index and keeps it.
func (h *history) add(r Request) {
	if len(h.requests) == 2*remembered {
		h.requests = append(h.requests[:0], h.requests[remembered:]...)
		h.forgotten += remembered
	}
	r.Index = h.count()
	h.requests = append(h.requests, r)

	kind := Tally{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource}
	t, known := h.tallies[kind]
	if !known {
		t = kind
	}
	t.Requests++
	if r.Refused() {
		t.Refused++
	}
	if h.tallies == nil {
		h.tallies = map[Tally]Tally{}
	}
	h.tallies[kind] = t
}

// count is the index of the next request.
func (h *history) count() int { return h.forgotten + len(h.requests) }

// since gives a copy of what is kept from index on.
func (h *history) since(index int) []Request {
	return slices.Clone(h.requests[min(max(0, index-h.forgotten), len(h.requests)):])
}

func (h *history) sortedTallies() []Tally {
	return slices.SortedFunc(maps.Values(h.tallies), func(a, b Tally) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Verb, b.Verb))
	})
}
