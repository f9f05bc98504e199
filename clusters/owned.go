package clusters

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Owned makes clusters of which it knows afterwards that they are ours. It
// writes down who makes which cluster before the provider begins, deletes only
// what is written down, and finds what dead processes left.
//
// Several processes may use the same state directory at once.
type Owned struct {
	state    string
	provider Provider
}

// NewOwned gives a provider a memory in stateDir, the absolute path of the
// checkout's .lab folder.
func NewOwned(stateDir string, p Provider) *Owned {
	return &Owned{state: stateDir, provider: p}
}

// Provider is the provider that makes the clusters.
func (o *Owned) Provider() Provider { return o.provider }

// purposes are short, because they become part of host names.
var purposes = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$`)

// Create makes a cluster named lab-PURPOSE-<8 hex>. It belongs to this process,
// and Sweep removes it after the process has ended, unless keep is true: then it
// stays until it is deleted by name. When Create fails, ctx ends or the provider
// panics, nothing of the cluster is left; if that cannot be achieved, the error
// says so and the record stays for a later Sweep.
func (o *Owned) Create(ctx context.Context, purpose string, spec Spec, keep bool) (*Cluster, error) {
	if !purposes.MatchString(purpose) {
		return nil, fmt.Errorf("purpose %q of a cluster: use up to 20 lower case letters, digits and dashes", purpose)
	}
	return o.create(ctx, NewName(purpose), purpose, spec, keep)
}

// CreateNamed is Create for somebody who drew the name beforehand, with [NewName], so that it stands somewhere
// before the cluster does.
func (o *Owned) CreateNamed(ctx context.Context, name, purpose string, spec Spec, keep bool) (*Cluster, error) {
	if !purposes.MatchString(purpose) || !strings.HasPrefix(name, "lab-"+purpose+"-") {
		return nil, fmt.Errorf("create cluster %s: that is no name of a cluster for %q", name, purpose)
	}
	return o.create(ctx, name, purpose, spec, keep)
}

func (o *Owned) create(ctx context.Context, name, purpose string, spec Spec, keep bool) (c *Cluster, err error) {
	// An engine that does not answer is found out before anything is written down: what is recorded has to be deleted.
	if _, err := o.provider.List(ctx); err != nil {
		return nil, err
	}
	owner, err := o.claim(name, purpose)
	if err != nil {
		return nil, err
	}
	created := false
	defer func() {
		if created {
			return
		}
		if errors.Is(err, ErrExists) { // it is somebody else's
			c, err = nil, errors.Join(err, o.forget(name, o.unclaim))
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		c, err = nil, errors.Join(err, o.Delete(ctx, name))
	}()
	if c, err = o.provider.Create(ctx, name, spec); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create cluster %s: %w", name, err)
	}
	if spec.Prepare != nil {
		if err := spec.Prepare(ctx, c); err != nil {
			return nil, err
		}
	}
	owner.Kept, owner.Cluster = keep, c
	if keep {
		if owner.PID, err = o.keep(ctx, owner); err != nil {
			return nil, err
		}
	}
	if err := o.write(owner); err != nil {
		return nil, err
	}
	created = true
	return c, nil
}

// keep hands a cluster over to a process of its own, where the provider has one
// for it, and returns who answers for the cluster from now on.
func (o *Owned) keep(ctx context.Context, owner Owner) (pid int, err error) {
	if keeper, ok := o.provider.(Keeper); ok {
		return keeper.Keep(ctx, owner.Name)
	}
	return owner.PID, nil
}

// claim writes the record of a cluster that is about to be made. Of several processes that want the same name, one gets it.
func (o *Owned) claim(name, purpose string) (owner Owner, err error) {
	if err := CheckName(name); err != nil {
		return Owner{}, err
	}
	owner = Owner{
		Schema: ownerSchema, Name: name, Provider: o.identity(), Purpose: purpose,
		PID: os.Getpid(), Created: time.Now().UTC().Truncate(time.Second),
	}
	err = o.withLock(func() error {
		if _, err := o.read(name); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w, recorded by %s", ErrExists, o.path(name))
		}
		if err := MakeDir(o.state, name); err != nil {
			return err
		}
		unlock, locked, err := o.tryLock(name)
		if err == nil && !locked {
			err = ErrExists
		}
		if err == nil {
			err = o.write(owner)
		}
		if err != nil {
			unlock()
			return err
		}
		held.Store(o.lockFile(name), unlock)
		return nil
	})
	if err != nil {
		return Owner{}, fmt.Errorf("create cluster %s: %w", name, err)
	}
	return owner, nil
}

// NewName draws a name that no other cluster has, lab-PURPOSE-<8 hex>.
func NewName(purpose string) string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return "lab-" + purpose + "-" + hex.EncodeToString(random[:])
}

func (o *Owned) identity() string {
	if p, ok := o.provider.(Identifier); ok {
		return p.Identity()
	}
	return fmt.Sprintf("%T", o.provider)
}

// Claim writes down that a cluster, which was made before anybody needed it, is used from now on. That happens
// once in its life: a second claim is an error, whatever came of the first. The caller must be the process
// that made it.
func (o *Owned) Claim(name string) error {
	owner, err := o.read(name)
	if err != nil {
		return fmt.Errorf("claim cluster %s: %w", name, err)
	}
	if owner.Claimed != nil {
		return fmt.Errorf("claim cluster %s: it was claimed at %s already", name, owner.Claimed.Format(time.RFC3339))
	}
	now := time.Now().UTC().Truncate(time.Second)
	owner.Claimed = &now
	return o.write(owner)
}

// Delete removes a cluster that is recorded here, and its record. A cluster
// that exists without a record is refused; one that neither exists nor is
// recorded is no error.
func (o *Owned) Delete(ctx context.Context, name string) error {
	_, err := o.delete(ctx, name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return o.refuse(ctx, name)
	}
	return err
}

// delete is Delete, and with abandoned only of what nobody wants any more. Until it returns, the record of an owner that
// has ended is locked: nobody else deletes the cluster, or makes another one of that name.
func (o *Owned) delete(ctx context.Context, name string, abandoned bool) (deleted bool, err error) {
	var owner Owner
	unlock, dead := func() {}, false
	err = o.withLock(func() error {
		if owner, err = o.read(name); err != nil {
			return err
		}
		unlock, dead, err = o.tryLock(name)
		return err
	})
	if err != nil {
		return false, err
	}
	defer unlock()
	if abandoned && (owner.Kept || !dead) {
		return false, nil
	}
	if owner.Provider != o.identity() {
		return false, fmt.Errorf("delete cluster %s: it was made by %s, not by %s", name, owner.Provider, o.identity())
	}
	halfMade := dead && owner.Cluster == nil && time.Since(owner.Created) < bootTimeout
	if err := o.deleteOrphans(ctx, name, halfMade); err != nil {
		return false, err
	}
	return true, o.forget(name, func(name string) error { return os.RemoveAll(Dir(o.state, name)) })
}

// orphanTime is how long programs that a killed process had started may go on
// making its cluster: the start of a container takes 1 to 3 s.
const orphanTime = 5 * time.Second

// deleteOrphans deletes a cluster. One that was being made when its process died, a moment ago, may come into being after
// its deletion, and so it is deleted again and again for a while.
func (o *Owned) deleteOrphans(ctx context.Context, name string, halfMade bool) error {
	end := time.Now()
	if halfMade {
		end = end.Add(orphanTime)
	}
	for {
		if err := o.provider.Delete(ctx, name); err != nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// forget calls remove, which removes the record of a cluster, and lets go of its lock.
func (o *Owned) forget(name string, remove func(name string) error) error {
	if err := o.withLock(func() error { return remove(name) }); err != nil {
		return fmt.Errorf("remove record of cluster %s: %w", name, err)
	}
	if unlock, ok := held.LoadAndDelete(o.lockFile(name)); ok {
		unlock.(func())()
	}
	return nil
}

// unclaim removes what claim wrote, and nothing that somebody else may have in that folder.
func (o *Owned) unclaim(name string) error {
	err := errors.Join(os.Remove(o.path(name)), os.Remove(o.lockFile(name)))
	_ = os.Remove(Dir(o.state, name)) // fails when there is more in it
	return err
}

// refuse is Delete of a cluster without a record.
func (o *Owned) refuse(ctx context.Context, name string) error {
	names, err := o.provider.List(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(names, name) {
		return fmt.Errorf("delete cluster %s: it is not recorded under %s, so it is not ours to delete", name, o.state)
	}
	return nil
}

// Sweep deletes the clusters that dead processes left and returns their names.
// Kept clusters, those of living processes and those of other providers stay.
// What could not be deleted is reported as an error and stays recorded; it
// should not stop anybody from working. While another process sweeps, there is
// nothing to do.
func (o *Owned) Sweep(ctx context.Context) ([]string, error) {
	return o.sweep(ctx, func(l *flock.Flock) (bool, error) { return l.TryLock() })
}

func (o *Owned) sweep(ctx context.Context, acquire func(*flock.Flock) (bool, error)) ([]string, error) {
	if _, err := os.Stat(filepath.Join(o.state, "clusters")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lock := flock.New(filepath.Join(o.state, "clusters", ".sweep"))
	locked, err := acquire(lock)
	if err != nil {
		return nil, fmt.Errorf("sweep clusters: %w", err)
	}
	if !locked {
		return nil, nil
	}
	defer func() { _ = lock.Unlock() }()
	owners, err := o.List(ctx)
	errs := []error{err}
	var swept []string
	for _, owner := range owners {
		if !owner.Abandoned() || owner.Provider != o.identity() {
			continue
		}
		deleted, err := o.delete(ctx, owner.Name, true)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // nobody else deleted it meanwhile
			errs = append(errs, fmt.Errorf("sweep: %w", err))
		}
		if deleted {
			swept = append(swept, owner.Name)
		}
	}
	return swept, errors.Join(errs...)
}
