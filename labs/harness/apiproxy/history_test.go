package apiproxy

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHistoryForgetsTheEarliest(t *testing.T) {
	const sent = 2*remembered + 7
	p := &Proxy{}
	for i := range sent {
		if i == 2*remembered && p.Forgot(0) {
			t.Error("forgot before there were too many")
		}
		p.add(Request{Verb: "get", Resource: "pods", Status: http.StatusOK})
	}
	all := p.Since(0)
	if p.Count() != sent || len(all) != remembered+7 || all[0].Index != remembered || all[len(all)-1].Index != sent-1 {
		t.Errorf("counted %d, and kept %d from %d to %d", p.Count(), len(all), all[0].Index, all[len(all)-1].Index)
	}
	if last := p.Since(sent - 3); len(last) != 3 || last[0].Index != sent-3 || len(p.Since(sent)) != 0 {
		t.Errorf("the last three: %v; after them: %v", last, p.Since(sent))
	}
	if !p.Forgot(remembered-1) || p.Forgot(remembered) {
		t.Error("the first half is forgotten, and no more")
	}
	p.add(Request{Verb: "update", Group: "apps", Resource: "deployments", Status: http.StatusConflict, Disturbed: true})
	p.add(Request{Verb: "update", Group: "apps", Resource: "deployments", Status: http.StatusForbidden})
	want := []Tally{{Verb: "get", Resource: "pods", Requests: sent}, {Verb: "update", Group: "apps", Resource: "deployments", Requests: 2, Refused: 1}}
	if diff := cmp.Diff(want, p.Tallies()); diff != "" {
		t.Error(diff)
	}
}
