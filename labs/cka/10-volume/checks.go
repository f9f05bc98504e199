// Package volume is task 10 of the CKA practice: give a released volume to a new claim.
package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/practice"
)

// Program is the code of the task.
func Program() practice.Program {
	return practice.Program{Setup: setUp, Checks: map[string]practice.Check{"bound": bound, "kept": kept}}
}

// setUp waits until the volume is Released, and so old that another one of its name is younger than the namespace: times are in seconds.
func setUp(ctx context.Context, s *practice.Setup) error {
	if err := s.Apply(ctx, "setup.yaml"); err != nil {
		return err
	}
	return s.Eventually(ctx, func(ctx context.Context) error {
		pv := &corev1.PersistentVolume{}
		err := s.Get(ctx, client.ObjectKey{Name: s.Values["volume"]}, pv)
		if err == nil && (pv.Status.Phase != corev1.VolumeReleased || time.Since(pv.CreationTimestamp.Time) < 3*time.Second) {
			err = errors.New("the volume is " + string(pv.Status.Phase))
		}
		return err
	})
}

func bound(ctx context.Context, r *practice.Reader) error {
	expected := "the claim " + r.Values["claim"] + " is bound to the volume " + r.Values["volume"]
	return r.Eventually(ctx, func(ctx context.Context) error {
		claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
		err := r.Get(ctx, client.ObjectKey{Namespace: r.Values["namespace"], Name: r.Values["claim"]}, claim)
		if apierrors.IsNotFound(err) {
			return finding.New("no-claim", expected, "there is no such claim in the namespace %s", r.Values["namespace"])
		}
		if err := errors.Join(err, client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Name: r.Values["volume"]}, pv))); err != nil {
			return err
		}
		switch seen := fmt.Sprintf("the claim is %s, the volume %s", claim.Status.Phase, pv.Status.Phase); {
		case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != r.Values["volume"]:
			return finding.New("other-volume", expected, "it has the volume %s", claim.Spec.VolumeName)
		case claim.Status.Phase == corev1.ClaimBound:
			return nil
		case pv.Status.Phase == corev1.VolumeReleased:
			return finding.New("released", expected, "%s", seen)
		default:
			return finding.New("pending", expected, "%s", seen)
		}
	})
}

func kept(ctx context.Context, r *practice.Reader) error {
	namespace, pv, spare := &corev1.Namespace{}, &corev1.PersistentVolume{}, &corev1.PersistentVolume{}
	err := errors.Join(r.Get(ctx, client.ObjectKey{Name: r.Values["namespace"]}, namespace), r.Get(ctx, client.ObjectKey{Name: r.Values["volume"]}, pv),
		client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Name: r.Values["spare"]}, spare)))
	switch policy := pv.Spec.PersistentVolumeReclaimPolicy; {
	case err != nil:
		return err
	case pv.CreationTimestamp.After(namespace.CreationTimestamp.Time):
		return finding.New("recreated", "the PersistentVolume that was there", "another one, created at %s", pv.CreationTimestamp.UTC())
	case policy != corev1.PersistentVolumeReclaimRetain:
		return finding.New("policy", "the reclaim policy Retain", "%s", policy)
	case spare.UID == "":
		return finding.New("spare", "the PersistentVolume "+r.Values["spare"]+" is left alone", "it is gone")
	}
	return nil
}
