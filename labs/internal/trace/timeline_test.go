package trace

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

var update = flag.Bool("update", false, "write testdata/*.txt anew")

// testdata holds what was recorded of two runs on kind, shortened to some checks and to the fields that a
// timeline reads: pass is the course's solution of lab 5; fail is that of lab 4 with an operator that never
// updates a Deployment.
func TestTheStoriesOfRecordedRuns(t *testing.T) {
	for name, failed := range map[string]bool{"pass": false, "fail": true} {
		var maxRepeats bytes.Buffer
		for _, s := range recorded(t, name).Timelines() {
			fmt.Fprintf(&maxRepeats, "%s %s\n%s\n\n", s.Check, s.Of, s.Line(failed))
			s.Print(&maxRepeats)
			fmt.Fprintln(&maxRepeats)
		}
		golden := "testdata/" + name + ".txt"
		if *update {
			must(t, os.WriteFile(golden, maxRepeats.Bytes(), 0o644))
		}
		want, err := os.ReadFile(golden)
		must(t, err)
		if diff := cmp.Diff(string(want), maxRepeats.String()); diff != "" {
			t.Errorf("the timeline differs (-%s +maxRepeats):\n%s", golden, diff)
		}
	}
}

func recorded(t *testing.T, name string) *Recording {
	t.Helper()
	r, err := ReadFile("testdata/" + name + ".jsonl")
	must(t, err)
	return r
}

func TestNobodyIsUnknownInARecordedRun(t *testing.T) {
	for _, name := range []string{"pass", "fail"} {
		for _, s := range recorded(t, name).Timelines() {
			for _, d := range s.Actions {
				if d.Actor == nobody {
					t.Errorf("%s: %s %s", s.Check, d.Actor, d)
				}
			}
		}
	}
}

func TestATimelineIsChosenByTheWordsOfAFinding(t *testing.T) {
	timeline := func(check, name string, actions ...Action) *Timeline {
		return &Timeline{Check: check, Of: types.NamespacedName{Name: name}, Actions: actions}
	}
	started, ready := Action{Actor: "kubelet", Verb: "started", Kind: "Pod"}, Action{Kind: available + "True"}
	timelines := []*Timeline{
		timeline("a", "first"), timeline("a", "second"), timeline("b", "third", started), timeline("c", "fourth", ready), timeline("d", "fifth", ready),
	}
	for _, test := range []struct {
		got  *Timeline
		want string
	}{
		{About(timelines, "a", "the selector of second picks the Pods of another"), "second"},
		{About(timelines, "a", "nothing"), "first"},
		{Furthest(timelines, []string{"a", "b"}), "third"},
		{Furthest(timelines, []string{"a", "b", "c", "d"}), "fourth"},
		{Furthest(timelines, []string{"a", "none"}), "first"},
	} {
		if test.got == nil || test.got.Of.Name != test.want {
			t.Errorf("%+v, want %s", test.got, test.want)
		}
	}
	if About(timelines, "e", "") != nil || Furthest(timelines, []string{"e"}) != nil {
		t.Error("a check without a Memcached has a timeline")
	}
}

func TestALoopIsCounted(t *testing.T) {
	start := time.Unix(0, 0)
	var actions []Action
	for i := range 100 {
		actions = append(actions, Action{At: start.Add(time.Duration(i) * time.Second), Verb: "changed", Kind: "Deployment", Count: 1})
	}
	folded := Fold(actions)
	if last := folded[len(folded)-1]; len(folded) != maxRepeats || last.Times != 100-maxRepeats || last.Last != actions[99].At {
		t.Errorf("%d actions, the last %+v", len(folded), folded[len(folded)-1])
	}
}

// answered is a request of the manager to update a Deployment, and what the API server said.
func answered(at time.Time, version string) Request {
	return Request{Times: 1, Request: apiproxy.Request{
		Time: at, Verb: "update", Group: "apps", Resource: "deployments", Namespace: "lab-check-abcde", Name: "cache",
		Status: 200, ResourceVersion: version, Object: "cache",
	}}
}

func TestAWriteThatWasAnsweredWithAnOldVersionChangedNothing(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	d := func(version string) *Observation {
		o := deployment("lab-check-abcde", 3)
		o.ResourceVersion = version
		return &Observation{Object: o}
	}
	first, second := d("1"), d("2")
	first.At, second.At = at(10), at(30)
	r := &Recording{
		Observations: []Observation{*first, *second},
		Requests: []Request{
			answered(at(20), "1"), // version 1 was there before
			answered(at(25), "2"), // made version 2
			answered(at(26), "2"), // found version 2
			answered(at(40), "7"), // nobody saw what became of it
		},
	}
	var got []int
	for _, u := range r.Unneeded() {
		got = append(got, slices.IndexFunc(r.Requests, func(o Request) bool { return o.Time.Equal(u.Time) }))
	}
	if diff := cmp.Diff([]int{0, 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatNoObjectShowsIsToldByTheRequest(t *testing.T) {
	refused := func(verb, resource string, status int, message string) Request {
		return Request{Times: 1, Request: apiproxy.Request{
			Verb: verb, Resource: resource, Namespace: "n", Name: "cache", Status: status, Message: message,
		}}
	}
	for _, test := range []struct {
		r    Request
		want string
	}{
		{refused("create", "deployments", 403, "may not"), "failed to create Deployment cache: may not"},
		{refused("create", "deployments", 409, `"cache" already exists`), "failed to create Deployment cache: it exists already"},
		{refused("update", "memcacheds", 409, "modified"), "failed to change Memcached cache: a conflict, it has changed since it was read"},
		{refused("delete", "deployments", 404, "not found"), "failed to remove Deployment cache: it is not there"},
		{refused("create", "events", 422, "note too long"), "failed to create an event: note too long"},
		{refused("create", "events", 201, ""), ""},
		{refused("create", "configmaps", 201, ""), "created configmaps cache"},
		{refused("patch", "deployments", 503, ""), "failed to change Deployment cache: the API server answered 503"},
	} {
		if got := newMerger(&Recording{}).request(0, test.r).String(); got != test.want {
			t.Errorf("%s: %q, want %q", test.r.Request, got, test.want)
		}
	}
}

func TestTheCastOfARun(t *testing.T) {
	teller := newMerger(&Recording{Suite: "labs.test"})
	for fieldManager, want := range map[string]string{
		"labs.test": You, "kubectl-edit": You, "kubelet": "kubelet", "kube-scheduler": "kube-scheduler", "kwok": "kwok",
		"manager": Manager, "memcached-operator": Manager,
	} {
		if got := teller.actor(fieldManager); got != want {
			t.Errorf("%s is %s, want %s", fieldManager, got, want)
		}
	}
}

func TestACheckIsKnownByItsNamespace(t *testing.T) {
	for namespace, want := range map[string]string{
		"lab-creates-deployment-x7k2p": "creates-deployment", "lab-system": "", "default": "", "kube-system": "", "lab--x7k2p": "",
	} {
		if got := CheckOf(namespace); got != want {
			t.Errorf("%s is of the check %q, want %q", namespace, got, want)
		}
	}
}

func TestALineNamesADeploymentThatIsNotNamedAfterItsMemcached(t *testing.T) {
	s := &Timeline{Of: types.NamespacedName{Name: "cache"}, Actions: []Action{
		{Actor: You, Verb: "created", Kind: "Memcached", Name: "cache", Count: 1},
		{Actor: Manager, Verb: "created", Kind: "Deployment", Name: "cache-deployment", Count: 1},
	}}
	if got := s.Line(true); !strings.HasSuffix(got, "your manager created Deployment cache-deployment") {
		t.Error(got)
	}
}

// Each process of a run has a manager: what happens to another one is no part of a check's timelines.
func TestEachTimelineIsOfItsOwnManager(t *testing.T) {
	notes := []Note{
		{At: time.Unix(3, 0), Namespace: "lab-restarts-abcde", Actor: You, Text: "stopped its own"},
		{At: time.Unix(4, 0), Namespace: "lab-kills-abcde", Actor: You, Text: "killed its own"},
	}
	for namespace, want := range map[string][]string{
		"lab-restarts-abcde": {"first", "stopped its own"}, "lab-kills-abcde": {"first", "killed its own"}, "lab-quiet-abcde": {"first"},
	} {
		s := &Timeline{Of: types.NamespacedName{Namespace: namespace}, Actions: []Action{{At: time.Unix(2, 0), Verb: "first", Count: 1}}}
		s.finish(notes)
		var got []string
		for _, d := range s.Actions {
			got = append(got, d.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", namespace, diff)
		}
	}
}

func TestTheManagersOwnDeletionIsNotYours(t *testing.T) {
	start := time.Unix(100, 0)
	d := deployment("lab-check-abcde", 3)
	gone := d.DeepCopy()
	d.ResourceVersion, gone.ResourceVersion = "1", "2"
	observations := []Observation{{At: start, Object: d}, {At: start.Add(3 * time.Second), Object: gone, Deleted: true}}
	deletion := Request{Times: 1, Request: apiproxy.Request{
		Time: start.Add(time.Second), Answered: start.Add(2 * time.Second), Status: 200,
		Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "lab-check-abcde", Name: "cache",
	}}
	for _, test := range []struct {
		requests []Request
		want     string
		at       int
	}{
		{nil, "you removed Deployment cache", 3},
		{[]Request{deletion}, "your manager removed Deployment cache", 2},
	} {
		actions := newMerger(&Recording{Observations: slices.Clone(observations), Requests: test.requests}).actions()
		last := actions[len(actions)-1]
		if got := last.Actor + " " + last.String(); got != test.want || len(actions) != 2 {
			t.Errorf("%q of %d actions, want %q of 2", got, len(actions), test.want)
		}
		if got := int(last.At.Sub(start).Seconds()); got != test.at {
			t.Errorf("%s: after %d s, want %d", last, got, test.at)
		}
	}
}

func TestALineTellsOfSilenceOnlyWhenItMatters(t *testing.T) {
	start := time.Unix(100, 0)
	s := &Timeline{Begun: start, Ended: start.Add(5 * time.Second), Actions: []Action{
		{At: start, Actor: Manager, Verb: "created", Kind: "Deployment", Count: 1},
		{At: start.Add(time.Second), Actor: You, Verb: "changed", Kind: "Memcached", Count: 1},
	}}
	const silence = "then nothing from your manager for 4.0 s"
	if got := s.Line(true); !strings.HasSuffix(got, silence) {
		t.Errorf("of a failed check: %s", got)
	}
	if got := s.Line(false); strings.Contains(got, silence) {
		t.Errorf("of a check that holds: %s", got)
	}
	s.Actions = append(s.Actions, Action{At: start.Add(2 * time.Second), Actor: Manager, Verb: "changed", Kind: "Deployment", Count: 1})
	if got := s.Line(true); strings.Contains(got, silence) {
		t.Errorf("of a manager that acted: %s", got)
	}
}

func TestWhatHappensToTheManagerIsPartOfTheStoriesOfThatTime(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	s := &Timeline{Ended: at(10), Actions: []Action{{At: at(2), Verb: "first", Count: 1}, {At: at(6), Verb: "last", Count: 1}}}
	s.finish([]Note{
		{At: at(1), Actor: You, Text: "came before"}, {At: at(4), Actor: You, Text: "stopped your manager"},
		{At: at(8), Actor: Manager, Text: "ended by itself"}, {At: at(11), Actor: You, Text: "came after"},
	})
	var got []string
	for _, d := range s.Actions {
		got = append(got, d.String())
	}
	if diff := cmp.Diff([]string{"first", "stopped your manager", "last", "ended by itself"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
