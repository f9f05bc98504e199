package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

const ns = "lab-follows-size-abcde"

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func row(ms int, actor, verb, kind, name string) Action {
	return Action{At: at(ms), Actor: actor, Verb: verb, Kind: kind, Name: name, Namespace: ns, Object: name}
}

func TestTimelineHoldsWhatIsAboutItsMemcached(t *testing.T) {
	other := row(1, Manager, "created", "Deployment", "tea")
	other.Namespace = "default"
	foreign := row(1, Manager, "created", "Deployment", "tea")
	foreign.Namespace = "lab-other-check-abcde"
	r := &Recording{Actions: []Action{
		row(0, Manager, "ended by itself", "", ""), row(0, You, "created", "Memcached", "tea"), other, foreign,
		row(2, You, "created", "Memcached", "rum"), row(3, You, "stopped your manager", "", ""),
		row(4, "deployment-controller", "created", "ReplicaSet", "tea-1"), row(9, "the check", ended, "", ""), row(10, You, "deleted", "Memcached", "tea"),
	}}
	var got []string
	for _, a := range r.Timelines()[0].Actions {
		got = append(got, a.Actor+" "+a.String())
	}
	want := []string{
		"you created Memcached tea", "your manager created Deployment tea", "you stopped your manager", "deployment-controller created ReplicaSet tea-1",
		"the check ended",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCauseComesBeforeEffect(t *testing.T) {
	r := &Recording{Actions: []Action{row(1, Manager, "created", "Deployment", "tea"), row(90, You, "created", "Memcached", "tea")}}
	if got := r.Timelines()[0].Actions[0]; got.Actor != You || got.At != at(1) {
		t.Errorf("it begins with %s %s at %s", got.Actor, got, got.At)
	}
}

func TestRequestsThatNoWatchShows(t *testing.T) {
	request := func(verb, resource string, status int, message, version string) apiproxy.Request {
		return apiproxy.Request{Time: at(10), Verb: verb, Resource: resource, Namespace: ns, Name: "tea", Status: status, Message: message, ResourceVersion: version}
	}
	seen := row(5, "kubelet", "", "Deployment", "tea")
	seen.Version = "7"
	for _, test := range []struct {
		q    apiproxy.Request
		want string
	}{
		{request("create", "deployments", 403, "may not", ""), "your manager could not create deployments/tea: may not"},
		{request("update", "deployments", 200, "", "7"), "your manager wrote deployments/tea as it was"},
		{request("update", "deployments", 200, "", "8"), ""},
		{request("create", "services", 201, "", "9"), "your manager created services/tea"},
	} {
		got := ""
		for _, a := range (&Recording{Actions: []Action{seen}, Requests: []apiproxy.Request{test.q}}).table() {
			got = a.Actor + " " + a.String()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.q, got, test.want)
		}
	}
}

func TestDeletionOfTheManager(t *testing.T) {
	r := &Recording{
		Actions:  []Action{row(11, You, "deleted", "Deployment", "tea"), row(1500, You, "deleted", "Deployment", "tea")},
		Requests: []apiproxy.Request{{Time: at(10), Verb: "delete", Resource: "deployments", Namespace: ns, Name: "tea", Status: 200}},
	}
	table := r.table()
	if len(table) != 2 || table[0].Actor != Manager || table[1].Actor != You {
		t.Errorf("%+v", table)
	}
}

func TestWriteAnsweredWithAnOldVersionIsUnneeded(t *testing.T) {
	seen := func(ms int, version string) Action { return Action{At: at(ms), Version: version} }
	update := func(ms int, version string) apiproxy.Request {
		return apiproxy.Request{Time: at(ms), Verb: "update", Status: 200, ResourceVersion: version}
	}
	r := &Recording{Actions: []Action{seen(10, "1"), seen(30, "2")}, Requests: []apiproxy.Request{
		update(20, "1"), // version 1 was there before
		update(25, "2"), // made version 2
		update(26, "2"), // found version 2
		update(40, "7"), // of a kind that is not watched
	}}
	var got []int64
	for _, q := range r.Unneeded() {
		got = append(got, q.Time.UnixMilli())
	}
	if diff := cmp.Diff([]int64{20, 26}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTimelineIsChosenByTheWordsOfAFinding(t *testing.T) {
	timeline := func(check, name string, actions int) *Timeline {
		return &Timeline{Check: check, Of: types.NamespacedName{Name: name}, Actions: make([]Action, actions)}
	}
	all := []*Timeline{timeline("a", "first", 1), timeline("a", "second", 1), timeline("b", "third", 2), timeline("c", "fourth", 2)}
	for want, got := range map[string]*Timeline{
		"second": About(all, "a", "the selector of second picks the Pods of another"),
		"first":  About(all, "a", "nothing"),
		"third":  Fullest(all, []string{"a", "b", "c", "none"}),
	} {
		if got == nil || got.Of.Name != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	if About(all, "none", "") != nil || Fullest(all, []string{"none"}) != nil {
		t.Error("a check without a Memcached has a timeline")
	}
}

func TestLineTellsOfSilenceOfAFailedCheck(t *testing.T) {
	line := func(failed bool, more ...Action) string {
		actions := append([]Action{row(0, You, "created", "Memcached", "tea"), row(60, Manager, "created", "Deployment", "tea"), row(400, You, "changed", "Memcached", "tea")}, more...)
		return (&Timeline{Of: types.NamespacedName{Name: "tea"}, Actions: append(actions, row(3900, "the check", ended, "", ""))}).Line(failed)
	}
	const did = "0.00 s you created Memcached tea · 0.06 s your manager created the Deployment · 0.40 s you changed the Memcached"
	const silent = " · then nothing from your manager for 3.5 s"
	answered := row(500, Manager, "scaled", "Deployment", "tea")
	for want, got := range map[string]string{
		did + silent: line(true), did: line(false), did + " · 0.50 s your manager scaled the Deployment": line(true, answered),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestReadsUpToACutLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	must(t, os.WriteFile(path, nil, 0o600))
	w := Join(path)
	w.Note(ns, You, "stopped your manager")
	w.Close()
	file, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append(file, `{"actions":[{"ac`...), 0o600))
	if r, err := ReadFile(path); err != nil || len(r.Actions) != 1 || !strings.Contains(r.Actions[0].Verb, "stopped") {
		t.Errorf("%+v, %v", r, err)
	}
}
