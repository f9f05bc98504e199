package demo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/trace"
)

const lab0 = "../../00-who-did-that/"

func readQuiz(t *testing.T) Quiz {
	t.Helper()
	quiz, err := ReadQuiz(lab0 + "quiz.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return quiz
}

func TestAnswersFileAsksAllQuestions(t *testing.T) {
	quiz := readQuiz(t)
	_, open, err := quiz.ReadAnswers(lab0 + "answers.yaml")
	if err != nil || len(open) != 8 {
		t.Errorf("open are %v, %v", open, err)
	}
	text, err := os.ReadFile(lab0 + "answers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range quiz {
		for _, q := range step.Questions {
			if !slices.Contains(open, q.ID) || !strings.Contains(string(text), q.Text) {
				t.Errorf("the file does not ask %s: %s", q.ID, q.Text)
			}
		}
	}
	for _, actor := range actors {
		if !strings.Contains(string(text), "  "+actor) {
			t.Errorf("the file does not say that an answer can be %s", actor)
		}
	}
}

func TestRejectAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "answers.yaml")
	for name, text := range map[string]string{
		"an unknown actor": "makes-the-pods: docker", "an unknown question": "makes-the-tea: you",
		"twice": "makes-the-pods: you\nmakes-the-pods: kubelet", "no YAML": "makes-the-pods you", "a list": "makes-the-pods: [you]",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readQuiz(t).ReadAnswers(path); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnswerIsWhoWasSeen(t *testing.T) {
	told := []trace.Action{
		{Actor: trace.You, Verb: "created", Kind: "Pod", Name: "alone"}, {Actor: "replicaset-controller", Verb: "created", Kind: "Pod", Name: "web-1"},
		{Actor: trace.You, Verb: "scaled", Kind: "ReplicaSet"}, {Actor: "deployment-controller", Verb: "scaled", Kind: "ReplicaSet"},
	}
	want := map[string]string{
		"makes-the-pods": "replicaset-controller", "replaces-a-pod": "replicaset-controller", "replaces-a-lone-pod": nobody,
		"undoes-your-change": "deployment-controller",
	}
	for _, step := range readQuiz(t) {
		for _, q := range step.Questions {
			if got := q.answer(told); want[q.ID] != "" && got != want[q.ID] {
				t.Errorf("%s: %s, want %s", q.ID, got, want[q.ID])
			}
		}
	}
}

// onStage performs a step without a cluster, with some observations.
func onStage(ctx context.Context, t *testing.T, s step, seen ...trace.Observation) (string, error) {
	t.Helper()
	var out bytes.Buffer
	batches := make(chan []trace.Observation, 1)
	batches <- seen
	stage := Stage{
		Cluster: &clusters.Cluster{}, Path: os.Getenv("PATH"), Dir: t.TempDir(), Out: &out, batches: batches,
		tracker: trace.NewTracker(func(fieldManager string) string { return fieldManager }),
	}
	_, err := stage.perform(ctx, 1, s)
	return out.String(), err
}

func TestStepEndsWhenItsPodsRun(t *testing.T) {
	object := func(kind string, status map[string]any) trace.Observation {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "status": status}}
		o.SetName(strings.ToLower(kind))
		o.SetUID(types.UID(kind))
		return trace.Observation{At: time.Now(), Object: o}
	}
	s := step{Command: "true", Until: until{Pods: new(1), Seen: []string{"created Pod pod"}}}
	deployment, pod := object("Deployment", map[string]any{"availableReplicas": int64(1)}), object("Pod", nil)
	if out, err := onStage(t.Context(), t, s, deployment, pod); err != nil || !strings.Contains(out, "created Pod pod") {
		t.Errorf("%v\n%s", err, out)
	}
	tracker, created := trace.NewTracker(func(name string) string { return name }), []trace.Action{{Verb: "created", Kind: "Pod", Name: "pod"}}
	tracker.Observe(pod)
	if s.Until.met(created, tracker) || s.Until.met(nil, tracker) || (until{Pods: new(0)}).met(nil, tracker) {
		t.Error("a step is over before its Pod is available, seen or gone")
	}
}

func TestStepFails(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		s    step
		want string
	}{
		"the command":        {t.Context(), step{Command: "echo no luck; false"}, "no luck"},
		"size 6 is accepted": {t.Context(), step{Command: "true", Refused: true}, "accepted"},
		"an interrupt":       {interrupted, step{Command: "sleep 60"}, context.Canceled.Error()},
	} {
		if _, err := onStage(test.ctx, t, test.s); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
