package hosted

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/clusters"
)

func TestHiddenFoldersAreNotSent(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cmd/main.go", ".aws/credentials", "hack/.cache/x", "bin/manager", "hack/bin/run.sh", ".golangci.yml"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := pack(dir)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range archive.File {
		got = append(got, f.Name)
	}
	if diff := cmp.Diff([]string{".golangci.yml", "cmd/main.go", "hack/bin/run.sh"}, got); diff != "" {
		t.Error(diff)
	}
}

// It is refused before anything is asked of the cluster: there is none.
func TestAWorkspaceThatNoSecretHoldsIsRefused(t *testing.T) {
	dir, large := t.TempDir(), make([]byte, 2*sentLimit)
	_, _ = rand.Read(large)
	if err := os.WriteFile(filepath.Join(dir, "film.mp4"), large, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := (&Judges{}).Check(t.Context(), dir, Request{Lab: 4})
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || !strings.Contains(problem.Fix, "move") {
		t.Errorf("Check() = %v, want a Problem that says what to do", err)
	}
}

func TestTheLastLineIsTheAnswer(t *testing.T) {
	answer, err := lastAnswer([]byte("… checking\npanic: {\n{\"results\":[{\"lab\":4,\"verdict\":\"pass\"}]}\n"))
	if err != nil || len(answer.Results) != 1 || answer.Results[0].Lab != 4 || answer.Results[0].Verdict != "pass" {
		t.Errorf("%+v, %v", answer, err)
	}
	for _, output := range []string{"", "… checking\n", "{\"results\":[{\"la"} {
		if answer, err := lastAnswer([]byte(output)); err == nil {
			t.Errorf("%q is the answer %+v", output, answer)
		}
	}
}

func TestWhatAJobWaitsFor(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ana", Name: "judge", UID: "job"}}
	owned := []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod := func(edit func(*corev1.PodStatus)) []corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod", OwnerReferences: owned}}
		edit(&p.Status)
		return []corev1.Pod{p}
	}
	in := func(phase corev1.PodPhase) []corev1.Pod { return pod(func(s *corev1.PodStatus) { s.Phase = phase }) }
	now := time.Now()
	lost := func(ago time.Duration) []corev1.Pod {
		pods := in(corev1.PodRunning)
		pods[0].DeletionTimestamp, pods[0].Spec.NodeName = &metav1.Time{Time: now.Add(-ago)}, "n1"
		return pods
	}
	broken := pod(func(s *corev1.PodStatus) {
		s.Phase = corev1.PodFailed
		s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "no space"}}}}
	})
	suspended, failed := job.DeepCopy(), job.DeepCopy()
	suspended.Spec.Suspend = ptr.To(true)
	failed.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}}
	strangers := in(corev1.PodSucceeded)
	strangers[0].OwnerReferences = nil
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		pods []corev1.Pod
		want string // "pod", or a part of what is said
	}{
		"it is queued":      {suspended, nil, "waits in the queue"},
		"it has no Pod":     {job, nil, "not begun yet"},
		"a stranger's Pod":  {job, strangers, "not begun yet"},
		"a Pod that starts": {job, pod(func(*corev1.PodStatus) {}), "is starting"},
		"a Pod without a node": {job, pod(func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes"}}
		}), "0/1 nodes"},
		"no image": {job, pod(func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
		}), "ErrImagePull"},
		"a Pod that runs":                 {job, in(corev1.PodRunning), "it is judging"},
		"one that has ended":              {job, in(corev1.PodSucceeded), "pod"},
		"one that is being removed":       {job, lost(time.Second), "not begun yet"},
		"one on a node that is gone":      {job, lost(3 * time.Minute), "node n1"},
		"one of several has ended":        {job, append(lost(3*time.Second), in(corev1.PodSucceeded)...), "pod"},
		"one that failed, and waits":      {job, broken, "not begun yet"},
		"the end":                         {failed, broken, "BackoffLimitExceeded  no space"},
		"the end, and there is an answer": {failed, in(corev1.PodSucceeded), "pod"},
	} {
		p, waitsFor, err := next(tc.job, tc.pods, now)
		got := waitsFor
		if p != nil {
			got = "pod"
		} else if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
