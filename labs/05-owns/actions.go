package owns

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
)

// target is a Memcached that lives through a storm. Its size and port are what its spec says now.
type target struct {
	env.Memcached
	// past are the ports that its spec or its Deployment had and must not have any more.
	past []int32
	// gone says that it was deleted for good.
	gone bool
}

// action does something to a Memcached or its Deployment, as anybody with kubectl might, and says what. What
// it draws does not depend on what it meets, so that a seed replays it.
type action func(context.Context, *rand.Rand, *target) (what string, err error)

// actions are what a storm is made of. Each of them happens in each round.
var actions = []action{resize, move, deleteChild, editChild, recreate}

// resize asks for another size.
func resize(ctx context.Context, r *rand.Rand, m *target) (string, error) {
	m.drawSize(r)
	return fmt.Sprintf("shall have size %d", m.Size), m.SetSpec(ctx, "size", m.Size)
}

// move asks for another port.
func move(ctx context.Context, r *rand.Rand, m *target) (string, error) {
	m.drawPort(r)
	return fmt.Sprintf("shall listen on port %d", m.Port), m.SetSpec(ctx, "containerPort", m.Port)
}

// deleteChild deletes the Deployment. One without an owner stays: a manager that was killed has left it so, and the next look at it
// tells.
func deleteChild(ctx context.Context, _ *rand.Rand, m *target) (string, error) {
	d := &appsv1.Deployment{}
	err := env.Admin().Get(ctx, m.Key(), d)
	if err == nil && metav1.GetControllerOf(d) == nil {
		return "keeps its Deployment, which has no owner", nil
	}
	if err == nil {
		err = env.Admin().Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	if apierrors.IsNotFound(err) {
		return "has no Deployment that could be deleted right now", nil
	}
	return "loses its Deployment: somebody deletes it", err
}

// editChild changes the Deployment where it is the operator's to decide.
func editChild(ctx context.Context, r *rand.Rand, m *target) (string, error) {
	edits := drifts(m.Memcached)
	edit := edits[r.IntN(len(edits))]
	m.past = append(m.past, m.Port+1) // one of the edits writes it
	d := &appsv1.Deployment{}
	err := env.Admin().Get(ctx, m.Key(), d)
	if apierrors.IsNotFound(err) || err == nil && len(d.Spec.Template.Spec.Containers) != 1 {
		return "has no Deployment that could be edited right now", nil
	}
	if err != nil {
		return "", fmt.Errorf("get Deployment %s: %w", m, err)
	}
	base := d.DeepCopy()
	edit.change(d)
	// With the lock nobody can bring back what the operator has just taken away.
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	err = env.Admin().Patch(ctx, d, patch, client.FieldOwner("kubectl-edit"))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return "has a Deployment that changed while somebody edited it", nil
	}
	return "has a Deployment in which somebody changes " + edit.what, err
}

// recreate deletes the Memcached and makes another one of the same name, at once.
func recreate(ctx context.Context, r *rand.Rand, m *target) (string, error) {
	m.drawSize(r)
	m.drawPort(r)
	what := fmt.Sprintf("is deleted and made anew at once, with size %d and port %d", m.Size, m.Port)
	if err := m.Delete(ctx, metav1.DeletePropagationBackground); err != nil {
		return what, err
	}
	Eventually(ctx, env.MemcachedOf(m.Memcached)).Should(match.BeGone())
	return what, m.Create(ctx)
}

// vanish deletes the Memcached for good.
func vanish(ctx context.Context, _ *rand.Rand, m *target) (string, error) {
	if err := m.Delete(ctx, metav1.DeletePropagationBackground); err != nil {
		return "", err
	}
	Eventually(ctx, env.MemcachedOf(m.Memcached)).Should(match.BeGone())
	return "is deleted for good", nil
}

// drawSize draws a size that is not today's.
func (m *target) drawSize(r *rand.Rand) {
	m.Size = (m.Size+r.Int32N(4))%5 + 1
}

// drawPort draws a port that neither the Memcached nor its Deployment ever had.
func (m *target) drawPort(r *rand.Rand) {
	m.past = append(m.past, m.Port)
	for slices.Contains(m.past, m.Port) || slices.Contains(m.past, m.Port+1) {
		m.Port = env.RandomPort(r)
	}
}
