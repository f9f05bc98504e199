package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

const ns = "lab-follows-size-abcde"

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func row(ms int, actor, verb, kind, name string) Action {
	return Action{At: at(ms), Actor: actor, Verb: verb, Kind: kind, Name: name, Namespace: ns}
}

func told(actions []Action) string {
	var lines []string
	for _, a := range actions {
		lines = append(lines, a.Actor+" "+a.String())
	}
	return strings.Join(lines, "\n")
}

func TestActionsOfCheckEndWithCheck(t *testing.T) {
	foreign := row(1, Manager, "created", "Deployment", "rum")
	foreign.Namespace = "lab-other-check-abcde"
	r := &Recording{Actions: []Action{
		row(10, You, "deleted", "Memcached", "tea"), row(9, "the check", ended, "", ""), row(3, You, "stopped your manager", "", ""),
		row(2, Manager, "created", "Deployment", "tea"), foreign, row(1, You, "created", "Memcached", "tea"), row(0, Manager, "ended by itself", "", ""),
	}}
	const want = "you created Memcached tea\nyour manager created Deployment tea\nyou stopped your manager\nthe check ended"
	if diff := cmp.Diff(want, told(r.ByCheck()["follows-size"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestsThatNoWatchShows(t *testing.T) {
	request := func(verb, resource string, status int, message string) apiproxy.Request {
		return apiproxy.Request{Time: at(10), Verb: verb, Resource: resource, Namespace: ns, Name: "tea", Status: status, Message: message}
	}
	path := filepath.Join(t.TempDir(), File)
	w := Join(path)
	w.write(Recording{Actions: []Action{
		row(5, You, "created", "Memcached", "tea"), row(11, You, "deleted", "Deployment", "tea"), row(1500, You, "deleted", "Deployment", "tea"),
	}})
	w.Add([]apiproxy.Request{
		request("create", "deployments", 403, "may not"), request("update", "deployments", 200, ""), request("create", "services", 201, ""),
		request("delete", "deployments", 200, ""), request("get", "services", 404, "no such"),
	}, []apiproxy.Tally{{Verb: "create"}})
	w.Close()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = file.WriteString(`{"actions":[{"ac`) // what a killed suite leaves
	must(t, err)
	must(t, file.Close())
	r, err := ReadFile(path)
	must(t, err)
	const want = "you created Memcached tea\nyour manager could not create deployments tea: may not\nyour manager created services tea\n" +
		"your manager deleted deployments tea\nyou deleted Deployment tea"
	if diff := cmp.Diff(want, told(r.ByCheck()["follows-size"])); diff != "" || len(r.Tallies) != 1 {
		t.Errorf("%v (-want +got):\n%s", r.Tallies, diff)
	}
}

func TestPrintShortensRepeats(t *testing.T) {
	var out strings.Builder
	var actions []Action
	for i := range 9 {
		actions = append(actions, row(i, Manager, "changed", "Deployment", "tea"))
	}
	Print(&out, at(0), append(actions, row(1500, You, "created", "Memcached", "tea")))
	if text := out.String(); strings.Count(text, "changed") != 6 || !strings.Contains(text, "1.50 s  you ") || !strings.Contains(text, "3 more") {
		t.Errorf("printed\n%s", text)
	}
}
