package apiproxy

import (
	"cmp"
	"slices"
)

const (
	// remembered is how many requests are kept of each sort: writes, what was refused or disturbed, and all others. A whole
	// run of a right operator stays below it; three full sorts are some fifteen megabytes.
	remembered = 8192
	// tallied is how many kinds of requests are counted separately. Operators have a dozen; a client that
	// invents resources has no end of them.
	tallied = 256
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

// history is what a proxy remembers. Its size is bounded, whatever is added.
type history struct {
	count int
	// Checks and verdicts are about writes and failures. Neither a flood of reads nor one of requests that are refused, which
	// costs a client nothing, pushes out what it has written.
	writes, failures, reads window
	tallies                 map[Tally]*Tally // by kind, which is a tally without numbers
}

// add gives the record its index and keeps it.
func (h *history) add(record Request) {
	record.Index = h.count
	h.count++
	switch {
	case record.Written():
		h.writes.add(record)
	case record.Refused() || record.Disturbed:
		h.failures.add(record)
	default:
		h.reads.add(record)
	}
	h.tally(record)
}

func (h *history) tally(record Request) {
	kind := Tally{Verb: record.Verb, Group: record.Group, Resource: record.Resource, Subresource: record.Subresource}
	t := h.tallies[kind]
	if t == nil {
		if len(h.tallies) == tallied {
			return
		}
		if h.tallies == nil {
			h.tallies = map[Tally]*Tally{}
		}
		t = new(kind)
		h.tallies[kind] = t
	}
	t.Requests++
	if record.Refused() {
		t.Refused++
	}
}

// since gives what is kept from index on, in order.
func (h *history) since(index int) []Request {
	found := slices.Concat(h.writes.since(index), h.failures.since(index), h.reads.since(index))
	slices.SortFunc(found, func(a, b Request) int { return cmp.Compare(a.Index, b.Index) })
	return found
}

func (h *history) all() []Tally {
	var all []Tally
	for _, t := range h.tallies {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Verb, b.Verb))
	})
	return all
}

// window keeps the latest records, in order of their index.
type window struct {
	records []Request
	from    int // records with a lower index may be forgotten
}

func (w *window) add(record Request) {
	if n := len(w.records); n >= remembered {
		w.from = w.records[n-remembered].Index + 1
	}
	if len(w.records) == 2*remembered { // so that most additions move nothing
		w.records = append(w.records[:0], w.records[remembered:]...)
	}
	w.records = append(w.records, record)
}

// since returns a copy of what is kept from index on.
func (w *window) since(index int) []Request {
	latest := w.records[max(0, len(w.records)-remembered):]
	from, _ := slices.BinarySearchFunc(latest, index, func(r Request, i int) int { return cmp.Compare(r.Index, i) })
	return slices.Clone(latest[from:])
}
