package registry_test

import (
	"context"
	"fmt"
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

// ask sends a request, and returns the status and the body of the answer.
func ask(ctx context.Context, t *testing.T, r *registry.Registry, method, uid, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, r.URL()+"/caches/"+uid, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

const tea = `{"namespace":"default","name":"tea","size":2}`

func TestContract(t *testing.T) {
	var told []registry.Request
	r := start(t, func(q registry.Request) { told = append(told, q) })
	for i, step := range []struct {
		method, uid, body string
		status            int
		answer            string
	}{
		{http.MethodGet, "u-1", "", 404, ""},
		{http.MethodDelete, "u-1", "", 404, ""},
		{http.MethodPut, "u-1", tea, 201, ""},
		{http.MethodGet, "u-1", "", 200, tea},
		{http.MethodPut, "u-1", strings.Replace(tea, "2", "3", 1), 200, ""},
		{http.MethodGet, "u-1", "", 200, strings.Replace(tea, "2", "3", 1)},
		{http.MethodPost, "u-1", tea, 405, ""},
		{http.MethodDelete, "u-1", "", 204, ""},
		{http.MethodGet, "u-1", "", 404, ""},
	} {
		status, answer := ask(t.Context(), t, r, step.method, step.uid, step.body)
		if status != step.status || answer != step.answer {
			t.Errorf("step %d, %s: %d %q", i, step.method, status, answer)
		}
		if last := r.Requests("u-1")[i]; last != told[i] || last.Method != step.method || last.Status != step.status || last.Ended.Before(last.Began) {
			t.Errorf("step %d is remembered as %+v", i, last)
		}
	}
}

func TestBehaviour(t *testing.T) {
	r := start(t, nil)
	r.Behave(registry.Everybody, registry.Behaviour{Statuses: []int{503}})
	r.Behave("refused", registry.Behaviour{Statuses: []int{422}, Only: http.MethodPut})
	var during []string
	r.Behave("watched", registry.Behaviour{Only: http.MethodPut, Meanwhile: func(_ context.Context, q registry.Request) {
		during = append(during, fmt.Sprintf("%s %s, %d entries", q.Method, q.Entry.Name, len(r.Entries())))
	}})
	for _, step := range []struct {
		method, uid string
		status      int
	}{
		{http.MethodPut, "somebody", 503}, {http.MethodDelete, "somebody", 503},
		{http.MethodPut, "refused", 422}, {http.MethodDelete, "refused", 404},
		{http.MethodDelete, "watched", 404}, {http.MethodPut, "watched", 201},
	} {
		if status, _ := ask(t.Context(), t, r, step.method, step.uid, tea); status != step.status {
			t.Errorf("%s of %s: %d", step.method, step.uid, status)
		}
	}
	if len(during) != 1 || during[0] != "PUT tea, 0 entries" {
		t.Errorf("a request is looked at before its effect: %q", during)
	}
	if len(r.Entries()) != 1 {
		t.Errorf("%v", r.Entries())
	}
}

// Each uid meets all of them, in this order, whatever others ask meanwhile.
func TestStatusesComeInOrder(t *testing.T) {
	r := start(t, nil)
	r.Behave(registry.Everybody, registry.Behaviour{Statuses: []int{429, registry.BreakOff, 503}})
	for range 2 { // a change of the behaviour begins anew
		for _, want := range []int{429, registry.BreakOff, 503, 503} {
			for _, uid := range []string{"a", "b"} {
				before := len(r.Requests(uid))
				request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, r.URL()+"/caches/"+uid, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := http.DefaultClient.Do(request)
				switch {
				case want == registry.BreakOff && err == nil:
					t.Errorf("%s was answered %d, and the connection had to break off", uid, response.StatusCode)
				case want != registry.BreakOff && (err != nil || response.StatusCode != want):
					t.Errorf("%s: %v, and wanted %d", uid, err, want)
				}
				if err == nil {
					response.Body.Close()
				}
				if all := r.Requests(uid); len(all) != before+1 || all[before].Status != want || all[before].Ended.IsZero() {
					t.Errorf("%s: remembered as %+v, and wanted %d", uid, all[before:], want)
				}
			}
		}
		r.Behave("c", registry.Behaviour{})
	}
}

// A client that gives up has had its effect, and no other one waits for it.
func TestSlowAnswer(t *testing.T) {
	g := gomega.NewWithT(t)
	r := start(t, nil)
	r.Behave("slow", registry.Behaviour{Delay: time.Hour})
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ask(ctx, t, r, http.MethodPut, "slow", tea)
	}()
	g.Eventually(func() []registry.Request { return r.Requests("slow") }).WithTimeout(10 * time.Second).Should(gomega.HaveLen(1))
	if status, _ := ask(t.Context(), t, r, http.MethodPut, "other", tea); status != 201 {
		t.Errorf("the other one: %d", status)
	}
	if open := r.Requests("slow")[0]; open.Began.IsZero() || !open.Ended.IsZero() || open.Status != 0 {
		t.Errorf("it was answered, or never sent: %+v", open)
	}
	giveUp()
	<-done
	g.Eventually(func() int { return len(r.Entries()) }).WithTimeout(10 * time.Second).Should(gomega.Equal(2))
	if all := r.Requests("slow"); len(all) != 1 || all[0].Ended.IsZero() {
		t.Errorf("it is still open: %+v", all)
	}
}
