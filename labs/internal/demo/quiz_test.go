package demo

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/trace"
)

const questionsOfLab0 = "../../00-who-did-that/answers.yaml"

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheFileOfLab0HasAllQuestionsAndNoAnswer(t *testing.T) {
	answers, open, err := ReadAnswers(questionsOfLab0)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, q := range questions() {
		ids = append(ids, q.id)
	}
	if diff := cmp.Diff(ids, open); diff != "" || len(ids) != 8 || len(slices.Collect(maps.Keys(answers))) != 8 {
		t.Errorf("the questions are %v, and open are (-all +open):\n%s", ids, diff)
	}
	text, err := os.ReadFile(questionsOfLab0)
	if err != nil {
		t.Fatal(err)
	}
	for _, actor := range actors {
		if !strings.Contains(string(text), "  "+actor) {
			t.Errorf("the file does not say that an answer can be %s", actor)
		}
	}
	for _, q := range questions() {
		if !strings.Contains(string(text), q.text) {
			t.Errorf("the file does not ask %q", q.text)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"somebody else": "makes-the-pods: docker",
		"another one":   "makes-the-tea: you",
		"twice":         "makes-the-pods: you\nmakes-the-pods: kubelet",
		"no YAML":       "makes-the-pods you",
		"a list":        "makes-the-pods: [you]",
	} {
		if _, _, err := ReadAnswers(write(t, text)); exit.Code(err) != exit.UsageError || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What people believe. Each is told to be wrong, with what was seen and why.
func TestWhatPeopleBelieve(t *testing.T) {
	for _, tc := range []struct{ id, believed, seen string }{
		{"makes-the-replicaset", trace.You, "deployment-controller"},
		{"makes-the-pods", "deployment-controller", "replicaset-controller"},
		{"chooses-the-node", "kubelet", "kube-scheduler"},
		{"starts-the-containers", "replicaset-controller", "kubelet"},
		{"replaces-a-pod", "kube-apiserver", "replicaset-controller"},
		{"undoes-your-change", nobody, "deployment-controller"},
		{"replaces-a-lone-pod", "kubelet", nobody},
		{"clears-up", "deployment-controller", "garbage-collector"},
	} {
		all := questions()
		q := all[slices.IndexFunc(all, func(q question) bool { return q.id == tc.id })]
		for answer, want := range map[string]outcome{tc.believed: isWrong, tc.seen: isRight} {
			var out bytes.Buffer
			quiz := Quiz{Answers: Answers{tc.id: answer}, Cluster: &clusters.Cluster{RealPods: true}}
			if got := quiz.judge(printer{&out}, q, tc.seen); got != want {
				t.Errorf("%s is %s: %v", tc.id, answer, got)
			}
			words := strings.Join(strings.Fields(out.String()), " ")
			if wrong := strings.Contains(words, "it was "+tc.seen); wrong != (want == isWrong) || !strings.Contains(words, q.why) {
				t.Errorf("%s is %s: told %q", tc.id, answer, words)
			}
		}
	}
}

func TestWithoutRealPodsNobodyIsAskedWhoStartsThem(t *testing.T) {
	var out bytes.Buffer
	quiz := Quiz{Answers: Answers{"starts-the-containers": "kubelet"}, Cluster: &clusters.Cluster{}}
	all := questions()
	q := all[slices.IndexFunc(all, func(q question) bool { return q.realPods })]
	if got := quiz.judge(printer{&out}, q, "kwok"); got != notJudged || !strings.Contains(out.String(), "Not judged") {
		t.Errorf("%v: %s", got, &out)
	}
}

func TestWhoDidIt(t *testing.T) {
	told := []trace.Action{
		{Actor: trace.You, Verb: "created", Kind: "Pod"},
		{Actor: trace.You, Verb: "scaled", Kind: "ReplicaSet"}, {Actor: "deployment-controller", Verb: "scaled", Kind: "ReplicaSet"},
		{Actor: "garbage-collector", Verb: "removed", Kind: "ReplicaSet"},
	}
	want := map[string]string{
		"replaces-a-lone-pod": nobody, "undoes-your-change": "deployment-controller", "clears-up": "garbage-collector", "makes-the-pods": trace.You,
		"makes-the-replicaset": "", "chooses-the-node": "", "starts-the-containers": "", "replaces-a-pod": trace.You,
	}
	for _, q := range questions() {
		if got := q.who(told); got != want[q.id] {
			t.Errorf("%s: %q, want %q", q.id, got, want[q.id])
		}
	}
	late := append(told, trace.Action{Actor: "replicaset-controller", Verb: "created", Kind: "Pod", Name: "web-1-2"}) // of the moment before
	revived := append(late, trace.Action{Actor: "kubelet", Verb: "created", Kind: "Pod", Name: alone})
	for _, q := range questions() {
		if q.id == "replaces-a-lone-pod" && (q.who(late) != nobody || q.who(revived) != "kubelet") {
			t.Errorf("a Pod of the Deployment is no new one: %s; somebody made another one: %s", q.who(late), q.who(revived))
		}
	}
}
