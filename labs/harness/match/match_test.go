package match

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

// deployment is one with so many replicas.
func deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab-a", Name: "tea", UID: "1", Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: new(replicas)},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas},
	}
}

// none is a Deployment that is not there.
func none() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab-a", Name: "tea"}}
}

func TestWhatMatchersSay(t *testing.T) {
	behind, starting := deployment(3), deployment(3)
	behind.Generation++
	starting.Status.AvailableReplicas = 1
	trouble := finding.New("image-pull", "it runs", "ErrImagePull")
	ended := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "memcached", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 64}}},
	}}}
	for name, tc := range map[string]struct {
		matcher     *Matcher
		actual      any
		cause, seen string
	}{
		"exists":                                 {Exist(), deployment(1), "", ""},
		"does not exist":                         {Exist(), none(), env.CauseNoDeployment, "none"},
		"does not exist, because":                {Exist().Because("missing-namesake"), none(), "missing-namesake", "none"},
		"replicas":                               {HaveReplicas(3), deployment(3), "", ""},
		"other replicas":                         {HaveReplicas(5), deployment(3), "wrong-replicas", "spec.replicas 3"},
		"other replicas, because":                {HaveReplicas(5).Because("not-scaled-up"), deployment(3), "not-scaled-up", "spec.replicas 3"},
		"no Deployment to have replicas":         {HaveReplicas(5), none(), env.CauseNoDeployment, "none"},
		"no Deployment to have replicas, either": {HaveReplicas(5).Because("not-scaled-up"), none(), env.CauseNoDeployment, "none"},
		"all Pods":                               {HaveAvailablePods(3), env.Rollout{Deployment: deployment(3)}, "", ""},
		"some Pods":                              {HaveAvailablePods(3), env.Rollout{Deployment: starting}, "too-few", "1 available of 3"},
		"Pods of an earlier generation":          {HaveAvailablePods(3), env.Rollout{Deployment: behind}, "too-few", "3 available of 3"},
		"Pods in trouble":                        {HaveAvailablePods(3), env.Rollout{Deployment: starting, Trouble: trouble}, "image-pull", "ErrImagePull"},
		"all Pods, and trouble that is over":     {HaveAvailablePods(3), env.Rollout{Deployment: deployment(3), Trouble: trouble}, "", ""},
		"no Deployment to have Pods":             {HaveAvailablePods(3), env.Rollout{Deployment: none()}, env.CauseNoDeployment, "none"},
		"Pods that are made":                     {HavePods(3), env.Rollout{Deployment: starting}, "", ""},
		"Pods that are not made":                 {HavePods(4), env.Rollout{Deployment: starting}, "too-few", "3"},
		"containers that run":                    {KeepRunning(), []corev1.Pod{{}}, "", ""},
		"a container that ended":                 {KeepRunning(), []corev1.Pod{{}, ended}, "crashing", "exit code 64"},
		"something else":                         {HaveReplicas(3), 3, finding.CauseOther, "got a int"},
	} {
		t.Run(name, func(t *testing.T) {
			findingtest.Require(t, tc.matcher.Judge(tc.actual), tc.cause, tc.seen)
		})
	}
}

// assertion is what a failed assertion left for the fail handler.
func assertion(t *testing.T, assert func(g gomega.Gomega)) *env.Unmet {
	t.Helper()
	env.TakeReport()
	failed := false
	assert(gomega.NewGomega(func(string, ...int) { failed = true }))
	u := env.TakeReport()
	if failed != (u != nil) {
		t.Errorf("failed: %t; reported: %+v", failed, u)
	}
	return u
}

func TestWhatReachesTheFailHandler(t *testing.T) {
	never := errors.New("connection refused")
	for name, tc := range map[string]struct {
		matcher  gomegatypes.GomegaMatcher
		actual   *appsv1.Deployment
		cause    string
		resource string
		missing  bool
	}{
		"a finding":               {HaveReplicas(5), deployment(3), "wrong-replicas", env.Deployments, false},
		"one of several":          {gomega.SatisfyAll(Exist(), HaveReplicas(5)), deployment(3), "wrong-replicas", env.Deployments, false},
		"no Deployment":           {gomega.SatisfyAll(HaveReplicas(5), Exist()), none(), env.CauseNoDeployment, env.Deployments, true},
		"that need not be there":  {Make(func(*appsv1.Deployment) error { return finding.New("gone", "it stays", "it is gone") }), none(), "gone", env.Deployments, false},
		"unexplained":             {HaveReplicas(5).Unexplained(), deployment(3), "wrong-replicas", "", false},
		"what will stay":          {Make(func(*appsv1.Deployment) error { return env.Final(finding.New("stolen", "a", "b")) }), deployment(3), "stolen", env.Deployments, false},
		"what ends it":            {HaveReplicas(5).StopIf(func() error { return finding.New("forbidden", "a", "b") }), deployment(3), "forbidden", "", false},
		"no finding, but a fault": {Make(func(*appsv1.Deployment) error { return never }), deployment(3), finding.CauseOther, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, assert := range map[string]func(gomega.Gomega){
				"Expect": func(g gomega.Gomega) { g.Expect(tc.actual).To(tc.matcher) },
				"Eventually": func(g gomega.Gomega) {
					g.Eventually(func() *appsv1.Deployment { return tc.actual }).WithTimeout(5 * time.Millisecond).Should(tc.matcher)
				},
				"Consistently": func(g gomega.Gomega) {
					g.Consistently(func() *appsv1.Deployment { return tc.actual }).WithTimeout(5 * time.Millisecond).Should(tc.matcher)
				},
			} {
				u := assertion(t, assert)
				if u == nil || finding.Of(u.Err).Cause != tc.cause || u.Resource != tc.resource || u.Missing != tc.missing {
					t.Errorf("%s: %+v", kind, u)
				}
			}
		})
	}
}

// A wait for what will not come any more is over at once, and one that may still come is not.
func TestWhatEndsEventually(t *testing.T) {
	polls := 0
	read := func() *appsv1.Deployment { polls++; return deployment(int32(polls)) }
	if u := assertion(t, func(g gomega.Gomega) { g.Eventually(read).WithTimeout(time.Minute).Should(HaveReplicas(3)) }); u != nil || polls != 3 {
		t.Errorf("%+v after %d polls", u, polls)
	}
	polls = 0
	final := Deployment(func(*appsv1.Deployment) error { return env.Final(finding.New("stolen", "a", "b")) })
	if u := assertion(t, func(g gomega.Gomega) { g.Eventually(read).WithTimeout(time.Minute).Should(final) }); u == nil || polls != 1 {
		t.Errorf("%+v after %d polls", u, polls)
	}
}

// A poll can fail after the matcher has held: Gomega asks for its message all the same.
func TestAPollThatFailsLater(t *testing.T) {
	for name, later := range map[string]error{
		"an error":               errors.New("connection refused"),
		"the end of the manager": gomega.StopTrying(finding.New("manager-exited", "it runs", "it ended").Error()),
	} {
		polls := 0
		read := func() (*appsv1.Deployment, error) {
			if polls++; polls > 1 {
				return nil, later
			}
			return deployment(3), nil
		}
		env.TakeReport()
		message := ""
		g := gomega.NewGomega(func(text string, _ ...int) { message = text })
		g.Consistently(read).WithTimeout(time.Minute).Should(HaveReplicas(3))
		if !strings.Contains(message, later.Error()) {
			t.Errorf("%s: %q", name, message)
		}
		env.TakeReport()
	}
}
