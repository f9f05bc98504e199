package apiproxy

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIndicesCountOnAfterTheEarliestAreForgotten(t *testing.T) {
	const sent = 5*remembered + 7
	var h history
	for range sent {
		h.add(Request{Verb: "update", Resource: "deployments"})
	}
	if h.count != sent {
		t.Errorf("counted %d of %d", h.count, sent)
	}
	all := h.since(0)
	if len(all) != remembered || all[0].Index != sent-remembered || all[len(all)-1].Index != sent-1 {
		t.Errorf("since 0: %d requests, from %d to %d", len(all), all[0].Index, all[len(all)-1].Index)
	}
	if last := h.since(sent - 3); len(last) != 3 || last[0].Index != sent-3 {
		t.Errorf("the last three: %v", last)
	}
	if none := h.since(sent); len(none) != 0 {
		t.Errorf("after the last: %v", none)
	}
}

func TestAFloodDoesNotPushOutWhatMatters(t *testing.T) {
	var h history
	h.add(Request{Verb: "delete", Resource: "deployments", Status: http.StatusOK})
	for range 3 * remembered {
		h.add(Request{Verb: "create", Resource: "secrets", Status: http.StatusForbidden})
	}
	h.add(Request{Verb: "create", Resource: "deployments", Status: http.StatusCreated})
	h.add(Request{Verb: "list", Resource: "secrets", Status: http.StatusForbidden})
	for range 3 * remembered {
		h.add(Request{Verb: "get", Resource: "deployments", Status: http.StatusOK})
	}
	h.add(Request{Verb: "patch", Resource: "deployments", Status: http.StatusOK})
	all := h.since(0)
	verbs := []string{all[0].Verb, all[remembered].Verb, all[remembered+1].Verb, all[len(all)-1].Verb}
	if len(all) != 2*remembered+3 || !slices.Equal(verbs, []string{"delete", "create", "list", "patch"}) {
		t.Errorf("kept %d: %v", len(all), verbs)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Index <= all[i-1].Index {
			t.Fatalf("%d after %d", all[i].Index, all[i-1].Index)
		}
	}
}

func TestMemoryIsBoundedWhateverIsSent(t *testing.T) {
	var h history
	for i := range 10 * remembered {
		h.add(Request{Verb: "update", Resource: "r" + string(rune('a'+i%1000))})
	}
	if n := cap(h.writes.records); n > 4*remembered {
		t.Errorf("room for %d requests is kept", n)
	}
	if n := len(h.tallies); n != tallied {
		t.Errorf("%d kinds are counted separately", n)
	}
}

func TestManyWritesAreNotForgottenInSilence(t *testing.T) {
	p := &Proxy{}
	for range remembered {
		p.history.add(Request{Verb: "update", Resource: "deployments"})
	}
	if p.Forgot(0) {
		t.Error("there is room for as many writes as are remembered")
	}
	p.history.add(Request{Verb: "create", Resource: "selfsubjectreviews"})
	if !p.Forgot(0) || p.Forgot(1) {
		t.Error("the first write is forgotten, and no other")
	}
}

// A write can be done and be answered with an error, so that failures matter as well.
func TestManyFailuresAreNotForgottenInSilence(t *testing.T) {
	p := &Proxy{}
	for range remembered + 1 {
		p.history.add(Request{Verb: "list", Resource: "secrets", Status: http.StatusForbidden})
	}
	if !p.Forgot(0) || p.Forgot(1) {
		t.Error("the first failure is forgotten, and no other")
	}
}

func TestWhatMayHaveBeenDoneIsAWrite(t *testing.T) {
	for want, requests := range map[bool][]Request{
		true: {
			{Verb: "delete", Status: http.StatusOK}, {Verb: "delete", Status: http.StatusGatewayTimeout}, {Verb: "patch", Status: http.StatusBadGateway}, {Verb: "create", Status: http.StatusNotAcceptable},
			{Verb: "deletecollection", Status: http.StatusConflict}, // of the second object
		},
		false: {
			{Verb: "delete", Status: http.StatusConflict}, {Verb: "create", Status: http.StatusForbidden}, {Verb: "deletecollection", Status: http.StatusForbidden},
			{Verb: "list", Status: http.StatusOK}, {Verb: "create", Status: http.StatusCreated, DryRun: true}, {Verb: "update", Status: http.StatusInternalServerError, Disturbed: true},
		},
	} {
		for _, r := range requests {
			if got := r.Written(); got != want {
				t.Errorf("%+v: %v", r, got)
			}
			var h history
			h.add(r)
			if got := len(h.writes.records) == 1; got != want {
				t.Errorf("%+v is kept among the writes: %v", r, got)
			}
		}
	}
}

func TestWhatIsMadeByAPatchIsCreated(t *testing.T) {
	for want, requests := range map[bool][]Request{
		true:  {{Verb: "create", Status: http.StatusCreated}, {Verb: "patch", Status: http.StatusCreated}, {Verb: "create", Status: http.StatusGatewayTimeout}},
		false: {{Verb: "patch", Status: http.StatusOK}, {Verb: "create", Status: http.StatusConflict}, {Verb: "patch", Status: http.StatusCreated, DryRun: true}},
	} {
		for _, r := range requests {
			if got := r.Created(); got != want {
				t.Errorf("%+v: %v", r, got)
			}
		}
	}
}

func TestTalliesCountWhatIsForgotten(t *testing.T) {
	var h history
	for range 3 * remembered {
		h.add(Request{Verb: "get", Resource: "pods", Status: http.StatusOK})
	}
	h.add(Request{Verb: "update", Group: "apps", Resource: "deployments", Status: http.StatusConflict, Disturbed: true})
	h.add(Request{Verb: "update", Group: "apps", Resource: "deployments", Status: http.StatusForbidden})
	want := []Tally{
		{Verb: "get", Resource: "pods", Requests: 3 * remembered},
		{Verb: "update", Group: "apps", Resource: "deployments", Requests: 2, Refused: 1},
	}
	if diff := cmp.Diff(want, h.all()); diff != "" {
		t.Error(diff)
	}
}
