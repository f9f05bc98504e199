package owns

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// drift is one edit of a Deployment that its operator has to put back.
type drift struct {
	what   string
	change func(*appsv1.Deployment)
	value  func(*appsv1.Deployment) string
}

// drifts are edits that every style of writing can put back: each changes a value in its place.
func drifts(m env.Memcached) []drift {
	return []drift{
		{
			what:   "spec.replicas", // none: an operator may leave out what is scaled to zero
			change: func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) },
			value:  func(d *appsv1.Deployment) string { return fmt.Sprint(ptr.Deref(d.Spec.Replicas, 1)) },
		},
		{
			what:   "the container's image",
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "operator-lab.local/drifted:1" },
			value:  func(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image },
		},
		{
			what:   "the port on the container's command line",
			change: func(d *appsv1.Deployment) { replacePort(d, fmt.Sprint(m.Port), fmt.Sprint(m.Port+1)) },
			value:  env.CommandLine,
		},
	}
}

// repairs makes the edit and waits until the value is what it was, without touching the Memcached.
func repairs(ctx context.Context, m env.Memcached, d drift) {
	GinkgoHelper()
	before, err := m.Deployment(ctx)
	Expect(err).To(Succeed())
	_, err = env.Container(before)
	Expect(err).To(Succeed())
	Expect(edit(ctx, m, d.change)).To(Succeed())
	want := d.value(before)
	Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(match.BeSameAs(before), match.Deployment(func(now *appsv1.Deployment) error {
		if have := d.value(now); have != want {
			return finding.New("not-repaired", fmt.Sprintf("%s is put back to %s", d.what, want), "%s", have).
				With(finding.Field{Path: d.what, Want: want, Have: have})
		}
		return nil
	})))
}

// edit changes the Deployment as somebody with kubectl would.
func edit(ctx context.Context, m env.Memcached, change func(*appsv1.Deployment)) error {
	d, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	base := d.DeepCopy()
	change(d)
	if err := env.Admin().Patch(ctx, d, client.MergeFrom(base), client.FieldOwner("kubectl-edit")); err != nil {
		return fmt.Errorf("edit Deployment %s: %w", m, err)
	}
	return nil
}

func replacePort(d *appsv1.Deployment, from, to string) {
	c := &d.Spec.Template.Spec.Containers[0]
	for i := range c.Command {
		c.Command[i] = strings.ReplaceAll(c.Command[i], from, to)
	}
	for i := range c.Args {
		c.Args[i] = strings.ReplaceAll(c.Args[i], from, to)
	}
	for i := range c.Env {
		c.Env[i].Value = strings.ReplaceAll(c.Env[i].Value, from, to)
	}
}

const (
	foreignKey, foreignValue = "example.org/team", "blue"
	// restartedAt is the annotation of the Pod template with which `kubectl rollout restart` replaces all Pods.
	restartedAt = "kubectl.kubernetes.io/restartedAt"
)

func setMetadata(d *appsv1.Deployment) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, foreignKey, foreignValue)
	metav1.SetMetaDataLabel(&d.ObjectMeta, foreignKey, foreignValue)
	metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, restartedAt, foreignValue)
}

// keepMetadata wants what [setMetadata] has set.
func keepMetadata() *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		expected := fmt.Sprintf("the %s that somebody else set stays", foreignKey)
		switch {
		case d.Annotations[foreignKey] != foreignValue:
			return finding.New("metadata-removed", expected, "the annotation is gone")
		case d.Labels[foreignKey] != foreignValue:
			return finding.New("metadata-removed", expected, "the label is gone")
		case d.Spec.Template.Annotations[restartedAt] != foreignValue:
			return finding.New("restart-undone", "the annotation of `kubectl rollout restart` on the Pod template stays", "the annotation %s is gone", restartedAt)
		}
		return nil
	}).Unexplained()
}
