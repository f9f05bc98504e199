package trace

import (
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
	path := filepath.Join(t.TempDir(), File)
	foreign := row(1, Manager, "created", "Deployment", "rum")
	foreign.Namespace = "lab-other-check-abcde"
	w := Join(path)
	w.write(row(10, You, "deleted", "Memcached", "tea"), row(9, "the check", ended, "", ""), row(4, You, "stopped your manager", "", ""),
		row(2, Manager, "created", "Deployment", "tea"), foreign, row(3, You, "created", "Memcached", "tea"), row(0, Manager, "ended by itself", "", ""))
	w.Close()
	actions, err := ByCheck(path)
	must(t, err)
	const want = "you created Memcached tea\nyour manager created Deployment tea\nyou stopped your manager\nthe check ended"
	if diff := cmp.Diff(want, told(actions["follows-size"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestsThatNoWatchShows(t *testing.T) {
	request := func(verb, resource string, status int, message string) apiproxy.Request {
		return apiproxy.Request{Time: at(10), Verb: verb, Resource: resource, Namespace: ns, Name: "tea", Status: status, Message: message}
	}
	path := filepath.Join(t.TempDir(), File)
	w := Join(path)
	w.write(row(5, You, "created", "Memcached", "tea"), row(11, You, "deleted", "Deployment", "tea"), row(1500, You, "deleted", "Deployment", "tea"))
	w.Add([]apiproxy.Request{
		request("create", "deployments", 403, "may not"), request("update", "deployments", 200, ""), request("create", "services", 201, ""),
		request("delete", "deployments", 200, ""), request("get", "services", 404, "no such"),
	})
	_, err := w.file.WriteString(`{"actor":"you","ve`) // what a killed suite leaves
	must(t, err)
	w.Close()
	actions, err := ByCheck(path)
	must(t, err)
	const want = "you created Memcached tea\nyour manager could not create Deployment tea: may not\nyour manager created Service tea\n" +
		"your manager deleted Deployment tea\nyou deleted Deployment tea"
	if diff := cmp.Diff(want, told(actions["follows-size"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
