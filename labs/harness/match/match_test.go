package match

import (
	"errors"
	"testing"
	"time"

	"github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

// deployment is a Deployment with so many replicas, all of them available.
func deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab-a", Name: "tea", UID: "1", Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: new(replicas)},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas},
	}
}

// none is a Deployment that does not exist.
func none() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab-a", Name: "tea"}}
}

func TestMatcherFindings(t *testing.T) {
	behind, starting := deployment(3), deployment(3)
	behind.Generation++
	starting.Status.AvailableReplicas = 1
	trouble := finding.New("image-pull", "it runs", "ErrImagePull")
	for name, tc := range map[string]struct {
		matcher     *Matcher
		actual      any
		cause, seen string
	}{
		"exists":                                 {Exist(), deployment(1), "", ""},
		"does not exist":                         {Exist(), none(), env.CauseNoDeployment, "none"},
		"does not exist, because":                {Exist().Because("missing-deployment"), none(), "missing-deployment", "none"},
		"replicas":                               {HaveReplicas(3), deployment(3), "", ""},
		"other replicas":                         {HaveReplicas(5), deployment(3), "wrong-replicas", "spec.replicas 3"},
		"other replicas, because":                {HaveReplicas(5).Because("not-scaled-up"), deployment(3), "not-scaled-up", "spec.replicas 3"},
		"no Deployment to have replicas":         {HaveReplicas(5), none(), env.CauseNoDeployment, "none"},
		"no Deployment to have replicas, either": {HaveReplicas(5).Because("not-scaled-up"), none(), env.CauseNoDeployment, "none"},
		"one of Gomega's":                        {Because("not-scaled", "5 replicas", gomega.HaveField("Spec.Replicas", gomega.HaveValue(gomega.BeEquivalentTo(5)))), deployment(3), "not-scaled", "<int32>: 3"},
		"a text":                                 {Because("no-name", "a name", gomega.Not(gomega.BeEmpty())), "", "no-name", "nothing"},
		"all Pods":                               {haveAvailablePods(3), env.Rollout{Deployment: deployment(3)}, "", ""},
		"some Pods":                              {haveAvailablePods(3), env.Rollout{Deployment: starting}, "too-few", "1 available of 3"},
		"Pods of an earlier generation":          {haveAvailablePods(3), env.Rollout{Deployment: behind}, "too-few", "3 available of 3"},
		"Pods in trouble":                        {haveAvailablePods(3), env.Rollout{Deployment: starting, Trouble: trouble}, "image-pull", "ErrImagePull"},
		"all Pods, and trouble that is over":     {haveAvailablePods(3), env.Rollout{Deployment: deployment(3), Trouble: trouble}, "", ""},
		"no Deployment to have Pods":             {haveAvailablePods(3), env.Rollout{Deployment: none()}, env.CauseNoDeployment, "none"},
		"something else":                         {HaveReplicas(3), 3, finding.CauseOther, "got a int"},
	} {
		t.Run(name, func(t *testing.T) {
			findingtest.Require(t, tc.matcher.Judge(tc.actual), tc.cause, tc.seen)
		})
	}
}

// failure is why an assertion failed, nil when it did not.
func failure(assert func(g gomega.Gomega)) (failed *env.Failure) {
	before := gomega.Default
	defer func() { gomega.Default = before }()
	gomega.Default = env.NewGomega(func(f env.Failure) { failed = &f })
	assert(gomega.Default)
	return failed
}

func TestFailuresReachTheRecorder(t *testing.T) {
	never := errors.New("connection refused")
	for name, tc := range map[string]struct {
		matcher  gomegatypes.GomegaMatcher
		actual   *appsv1.Deployment
		cause    string
		resource string
		missing  bool
	}{
		"a finding":       {HaveReplicas(5), deployment(3), "wrong-replicas", env.Deployments, false},
		"one of several":  {gomega.SatisfyAll(Exist(), HaveReplicas(5)), deployment(3), "wrong-replicas", env.Deployments, false},
		"no Deployment":   {gomega.SatisfyAll(HaveReplicas(5), Exist()), none(), env.CauseNoDeployment, env.Deployments, true},
		"none is needed":  {Make(func(*appsv1.Deployment) error { return finding.New("gone", "it stays", "it is gone") }), none(), "gone", env.Deployments, false},
		"keeps its cause": {HaveReplicas(5).KeepCause(), deployment(3), "wrong-replicas", "", false},
		"a final finding": {Make(func(*appsv1.Deployment) error { return env.Final(finding.New("stolen", "a", "b")) }), deployment(3), "stolen", env.Deployments, false},
		"StopIf":          {HaveReplicas(5).StopIf(func() error { return finding.New("forbidden", "a", "b") }), deployment(3), "forbidden", "", false},
		"an error":        {Make(func(*appsv1.Deployment) error { return never }), deployment(3), finding.CauseOther, env.Deployments, false},
		"one of Gomega's": {Because("paused", "no pause", gomega.HaveField("Spec.Paused", true)), deployment(3), "paused", env.Deployments, false},
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
				f := failure(assert)
				if f == nil || finding.Of(f.Err).Cause != tc.cause || f.Resource != tc.resource || f.Missing != tc.missing {
					t.Errorf("%s: %+v", kind, f)
				}
			}
		})
	}
}

// A failure has timed out only if more time might have prevented it.
func TestTimedOutFailures(t *testing.T) {
	read := func() *appsv1.Deployment { return deployment(3) }
	final := Deployment(func(*appsv1.Deployment) error { return env.Final(finding.New("stolen", "a", "b")) })
	for name, tc := range map[string]struct {
		want   bool
		assert func(g gomega.Gomega)
	}{
		"Eventually":          {true, func(g gomega.Gomega) { g.Eventually(read).WithTimeout(5 * time.Millisecond).Should(HaveReplicas(5)) }},
		"Eventually, stopped": {false, func(g gomega.Gomega) { g.Eventually(read).WithTimeout(time.Minute).Should(final) }},
		"Consistently":        {false, func(g gomega.Gomega) { g.Consistently(read).WithTimeout(5 * time.Millisecond).Should(HaveReplicas(5)) }},
		"Expect":              {false, func(g gomega.Gomega) { g.Expect(read()).To(HaveReplicas(5)) }},
	} {
		if f := failure(tc.assert); f == nil || f.TimedOut != tc.want {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
