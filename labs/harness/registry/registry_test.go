package registry_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/harness/registry"
)

func start(t *testing.T, tell func(registry.Request)) *registry.Registry {
	t.Helper()
	r, err := registry.Start("127.0.0.1:0", tell)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// ask sends a request, and returns the status and the body of the answer; -1 when there is none.
func ask(ctx context.Context, r *registry.Registry, method, uid, body string) (int, string) {
	req, _ := http.NewRequestWithContext(ctx, method, r.URL()+"/caches/"+uid, strings.NewReader(body))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return -1, ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(text))
}

const tea = `{"namespace":"default","name":"tea","size":2}`

func TestContract(t *testing.T) {
	var told []registry.Request
	r := start(t, func(q registry.Request) { told = append(told, q) })
	for i, step := range []struct {
		method string
		status int
		answer string
	}{
		{http.MethodGet, 404, ""}, {http.MethodDelete, 404, ""}, {http.MethodPut, 201, ""}, {http.MethodGet, 200, tea},
		{http.MethodPut, 200, ""}, {http.MethodPost, 405, ""}, {http.MethodDelete, 204, ""}, {http.MethodGet, 404, ""},
	} {
		if status, answer := ask(t.Context(), r, step.method, "u-1", tea); status != step.status || answer != step.answer {
			t.Errorf("step %d, %s: %d %q", i, step.method, status, answer)
		}
		if last := r.Requests("u-1")[i]; last != told[i] || last.Method != step.method || last.Status != step.status || last.Ended.Before(last.Began) {
			t.Errorf("step %d is remembered as %+v", i, last)
		}
	}
}

// Each uid gets all statuses in their order, whatever the requests for other uids. Only limits them to one method.
func TestBehaviour(t *testing.T) {
	r := start(t, nil)
	r.Behave("", registry.Behaviour{Statuses: []int{429, -1, 503}})
	entries := -1
	r.Behave("put", registry.Behaviour{Only: http.MethodPut, Statuses: []int{422}, Meanwhile: func(context.Context, registry.Request) { entries = len(r.Entries()) }})
	for range 2 { // Behave begins the statuses again
		for _, want := range []int{429, -1, 503, 503} {
			for uid, want := range map[string]int{"a": want, "b": want, "put": 404} {
				if status, _ := ask(t.Context(), r, http.MethodDelete, uid, ""); status != want {
					t.Errorf("%s was answered %d, and wanted %d", uid, status, want)
				}
				if all := r.Requests(uid); all[len(all)-1].Status != want || all[len(all)-1].Ended.IsZero() {
					t.Errorf("%s: remembered as %+v, and wanted %d", uid, all, want)
				}
			}
		}
		r.Behave("c", registry.Behaviour{})
	}
	if status, _ := ask(t.Context(), r, http.MethodPut, "put", tea); status != 422 || entries != 0 || len(r.Entries()) != 0 {
		t.Errorf("answered %d, with %d entries meanwhile, and %v after it", status, entries, r.Entries())
	}
}

// A request has its effect even if the client gives up, and no other request waits for it.
func TestSlowAnswer(t *testing.T) {
	g := gomega.NewWithT(t)
	r := start(t, nil)
	r.Behave("slow", registry.Behaviour{Delay: time.Hour})
	ctx, giveUp := context.WithCancel(t.Context())
	go ask(ctx, r, http.MethodPut, "slow", tea)
	g.Eventually(func() []registry.Request { return r.Requests("slow") }).WithTimeout(10 * time.Second).Should(gomega.HaveLen(1))
	if status, _ := ask(t.Context(), r, http.MethodPut, "other", tea); status != 201 || !r.Requests("slow")[0].Ended.IsZero() {
		t.Errorf("the other one: %d; the slow one: %+v", status, r.Requests("slow"))
	}
	giveUp()
	g.Eventually(r.Entries).WithTimeout(10 * time.Second).Should(gomega.HaveLen(2))
	if all := r.Requests("slow"); len(all) != 1 || all[0].Ended.IsZero() {
		t.Errorf("it is still open: %+v", all)
	}
}
