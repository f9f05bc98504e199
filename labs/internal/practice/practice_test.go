package practice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	curriculum = "version: v1\ndomains:\n- {name: Storage, weight: 10, objectives: [Keep data]}\n"
	taskFile   = "title: Keep it\nobjective: Keep data\nvalues: {name: [a, b]}\nchecks: [{id: kept, title: It is kept}]\n"
)

// write writes the files of a practice with one task, with changes, and loads it.
func write(t *testing.T, changed map[string]string) (*Practice, error) {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"labs/cka/curriculum.yaml": curriculum, "labs/cka/03-keep/task.yaml": taskFile, "labs/cka/03-keep/question.md": "Keep {{name}}.\n",
		"labs/cka/03-keep/wrong/drop.sh": "# caught: kept\n# cause: gone\n# It goes.\nrm {{name}}\n", "labs/cka/03-keep/solutions/hold.sh": "# Hold.\n",
	}
	maps.Copy(files, changed)
	for name, text := range files {
		if text != "" {
			coursetest.Write(t, root, name, text)
		}
	}
	return Load(root, root+"/state", map[string]Program{"03-keep": {}})
}

func TestLoad(t *testing.T) {
	p, err := write(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	task := p.Tasks[0]
	if task.Name != "cka-3" || task.Domain != "Storage" || task.Title != "Keep it" || task.Checks[0].ID != "kept" || task.Solutions[0].Name != "solution-hold" {
		t.Errorf("%+v", task)
	}
	if w := task.Wrong[0]; w.Name != "drop" || w.Caught != "kept" || w.Cause != "gone" {
		t.Errorf("%+v", w)
	}
	for file, text := range map[string]string{
		"labs/cka/curriculum.yaml": "versions: v1\n", "labs/cka/03-keep/task.yaml": taskFile + "page\n", "labs/cka/03-keep/question.md": "",
		"state/cka-3/attempt.json": "{",
	} {
		if _, err := write(t, map[string]string{file: text}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want an error of one line", file, err)
		}
	}
}

func TestQuestionShowsEveryValue(t *testing.T) {
	for question, says := range map[string]string{
		"Keep {{name}}.": "", "Keep it.": "{{name}}", "Keep {{name}} in {{place}}.": "{{place}}",
	} {
		task := &Task{question: question, Values: map[string][]string{"name": {"a"}}}
		text, err := task.Question(task.Draw(1))
		if says == "" && (err != nil || text != "Keep a.") || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %q, %v", question, text, err)
		}
	}
}

func TestSeedDraws(t *testing.T) {
	task := &Task{Values: map[string][]string{"name": {"a", "b", "c"}, "size": {"1", "2", "3"}}}
	seen := map[string]bool{}
	for seed := range int64(200) {
		if !maps.Equal(task.Draw(seed), task.Draw(seed)) {
			t.Fatalf("seed %d draws two things", seed)
		}
		seen[fmt.Sprint(task.Draw(seed))] = true
	}
	if len(seen) != 9 {
		t.Errorf("200 seeds drew %d of 9 pairs", len(seen))
	}
}

// ends is a check that ends with err.
func ends(err error) Check { return func(context.Context, *Reader) error { return err } }

func TestJudge(t *testing.T) {
	task := &Task{Lab: course.Lab{Checks: []course.Check{{ID: "a"}, {ID: "b", Requires: []string{"a"}}, {ID: "c", Requires: []string{"b"}}}}}
	failed := finding.New("cold", "warm", "cold")
	for want, checks := range map[string]map[string]Check{
		"a pass, b pass, c fail cold":       {"a": ends(nil), "b": ends(nil), "c": ends(fmt.Errorf("look: %w", failed))},
		"a fail cold, b blocked, c blocked": {"a": ends(failed), "b": ends(nil), "c": ends(nil)},
		"a pass, no route":                  {"a": ends(nil), "b": ends(errors.New("no route")), "c": ends(nil)},
	} {
		task.Program.Checks = checks
		var got []string
		states, err := task.judge(t.Context(), &Reader{Client: fake.NewFakeClient()})
		for _, c := range states {
			got = append(got, strings.Trim(fmt.Sprint(c.ID, " ", c.State, " ", c.Cause), " "))
		}
		if err != nil {
			got = append(got, err.Error()[strings.LastIndex(err.Error(), ": ")+2:])
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

func TestJudgingChangesNothing(t *testing.T) {
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}, Data: map[string]string{"a": "1"}}
	c := fake.NewClientBuilder().WithObjects(kept).Build()
	var writes []error
	meddles := func(ctx context.Context, r *Reader) error {
		mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "default"}}
		changed := kept.DeepCopy()
		changed.ResourceVersion, changed.Data = "", nil
		writes = []error{r.Create(ctx, mine), r.Update(ctx, changed), r.Delete(ctx, kept.DeepCopy()), r.DeleteAllOf(ctx, &corev1.ConfigMap{})}
		return nil
	}
	task := &Task{Lab: course.Lab{Checks: []course.Check{{ID: "a"}}}, Program: Program{Checks: map[string]Check{"a": meddles}}}
	if _, err := task.judge(t.Context(), &Reader{Client: c}); err != nil || slices.ContainsFunc(writes, func(err error) bool { return err != nil }) {
		t.Fatal(err, writes)
	}
	var all corev1.ConfigMapList
	if err := c.List(t.Context(), &all); err != nil || len(all.Items) != 1 || all.Items[0].Data["a"] != "1" {
		t.Errorf("%v, %v", all.Items, err)
	}
}

// memcached answers HTTP by closing the connection. The proxy says so in the body of its answer.
func TestRawGivesTheProxysError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503, "message": "error trying to reach service: EOF"}`)
	}))
	defer server.Close()
	raw, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&Reader{rest: raw.RESTClient()}).Raw(t.Context(), "/x"); err == nil || err.Error() != "error trying to reach service: EOF" {
		t.Error(err)
	}
}

// Without time left, as on the set-up alone, a check looks once.
func TestEventually(t *testing.T) {
	for want, until := range map[int]time.Time{1: {}, 3: time.Now().Add(time.Hour)} {
		looks := 0
		_ = waiter{until}.Eventually(t.Context(), func(context.Context) error {
			if looks++; looks < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if looks != want {
			t.Errorf("%d looks, want %d", looks, want)
		}
	}
}
