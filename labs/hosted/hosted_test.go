package hosted

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
)

func TestARequestArrivesAsItWasSent(t *testing.T) {
	sent := Request{Labs: []int{4}, Seed: 5, Storm: "long", Workspace: course.Tree{
		"cmd/main.go": {Data: []byte("package main\n"), Mode: 0o644}, "hack/run.sh": {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
	}}
	packed, err := Pack(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got Request
	if err := Unpack(bytes.NewReader(packed), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Error(diff)
	}
}

func TestHiddenFoldersAreNotSent(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cmd/main.go", ".aws/credentials", "hack/.cache/x", "bin/manager", "hack/bin/run.sh", ".golangci.yml"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".golangci.yml", "cmd/main.go", "hack/bin/run.sh"}, slices.Sorted(maps.Keys(tree))); diff != "" {
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
	_, err := (&Judges{}).Run(t.Context(), dir, Request{Labs: []int{4}})
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || !strings.Contains(problem.Fix, "move") {
		t.Errorf("Run() = %v, want a Problem that says what to do", err)
	}
}

// A judge that is killed has said something, and given no verdict. Whoever lost the connection to one asks for its log again.
func TestALogIsPassedOnOnceAndToItsEnd(t *testing.T) {
	var told []string
	j := Judges{Progress: func(line string) { told = append(told, strings.TrimSpace(line)) }}
	const begin, end = "{\"progress\":\"checking\"}\npanic: no space\n", "{\"result\":{\"results\":[{\"lab\":4,\"verdict\":\"pass\"}],\"cost\":{\"cpuSeconds\":2}}}\n"
	broken := io.MultiReader(strings.NewReader(begin+end[:20]), &failing{})
	result, _, lines, err := j.readEvents(broken, 0)
	if result != nil || lines != 2 || err == nil {
		t.Errorf("%+v, %v after %d lines of a log that breaks off", result, err, lines)
	}
	result, _, lines, err = j.readEvents(strings.NewReader(begin), lines)
	if result != nil || lines != 2 || err != nil {
		t.Errorf("%+v, %v after %d lines of one without a result", result, err, lines)
	}
	result, _, _, err = j.readEvents(strings.NewReader(begin+end), lines)
	if err != nil || result == nil || result.Results[0].Lab != 4 || result.Results[0].Verdict != "pass" || result.Cost.CPUSeconds != 2 {
		t.Errorf("%+v, %v", result, err)
	}
	if diff := cmp.Diff([]string{"checking", "panic: no space"}, told); diff != "" {
		t.Error(diff)
	}
}

// failing is a connection that was lost.
type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestAJudgeSaysWhatKeptItFromItsVerdict(t *testing.T) {
	j := Judges{Progress: func(string) {}}
	_, why, _, _ := j.readEvents(strings.NewReader("{\"problem\":{\"what\":\"no space\",\"fix\":\"make room\"}}\n"), 0)
	if why == nil || why.What != "no space" || why.Fix != "make room" {
		t.Errorf("%+v", why)
	}
}

func TestWhatAJobWaitsFor(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ana", Name: "judge", UID: "job"}}
	owned := []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod := func(edit func(*corev1.PodStatus)) []*corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod", OwnerReferences: owned}}
		edit(&p.Status)
		return []*corev1.Pod{p}
	}
	running := func(s *corev1.PodStatus) {
		s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	suspended, failed := job.DeepCopy(), job.DeepCopy()
	suspended.Spec.Suspend = ptr.To(true)
	failed.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded"}}
	strangers := pod(running)
	strangers[0].OwnerReferences = nil
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		pods []*corev1.Pod
		read bool
		want string // "pod", or a part of what is said
	}{
		"it is queued":      {suspended, nil, false, "waits in the queue"},
		"it has no Pod":     {job, nil, false, "not begun yet"},
		"a stranger's Pod":  {job, strangers, false, "not begun yet"},
		"a Pod that starts": {job, pod(func(*corev1.PodStatus) {}), false, "is starting"},
		"a Pod without a node": {job, pod(func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes"}}
		}), false, "0/1 nodes"},
		"no image": {job, pod(func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
		}), false, "ErrImagePull"},
		"a Pod that runs":                {job, pod(running), false, "pod"},
		"one of which all was read":      {job, pod(running), true, "not begun yet"},
		"the end":                        {failed, pod(running), true, "DeadlineExceeded"},
		"the end, and a log is not read": {failed, pod(running), false, "pod"},
	} {
		p, waitsFor, err := next(tc.job, tc.pods, map[types.UID]bool{"pod": tc.read})
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
