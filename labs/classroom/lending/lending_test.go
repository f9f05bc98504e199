package lending_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/lending"
	"github.com/example/operator-lab/labs/internal/roomclient/borrow"
)

// creation is how long the fake pool takes to make a cluster.
const creation = 10 * time.Second

// herd is a pool in memory that makes a cluster for each claim.
type herd struct {
	dir string

	mu        sync.Mutex
	made      int
	there     map[string]bool // claimed, and not discarded
	most      int
	discarded []string
	barren    error // why nothing can be made
	stubborn  bool  // what was begun is made, whoever has gone
}

func (h *herd) Claim(ctx context.Context) (*clusters.Cluster, bool, error) {
	gone := ctx.Done()
	if h.stubborn {
		gone = nil
	}
	select {
	case <-time.After(creation):
	case <-gone:
		return nil, false, ctx.Err()
	}
	return h.make()
}

// make makes a cluster, whose key is a file.
func (h *herd) make() (*clusters.Cluster, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.barren != nil {
		return nil, false, h.barren
	}
	h.made++
	name := fmt.Sprintf("cluster-%d", h.made)
	h.there[name] = true
	h.most = max(h.most, len(h.there))
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, []byte("the key of "+name), 0o600); err != nil {
		return nil, false, err
	}
	return &clusters.Cluster{Name: name, Provider: "kind", Kubeconfig: path, Nodes: 1}, false, nil
}

func (h *herd) Discard(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.there[name] {
		panic(name + " is discarded, and is not there")
	}
	delete(h.there, name)
	h.discarded = append(h.discarded, name)
}

func (h *herd) deleted() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.discarded)
}

func (h *herd) left() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.there)
}

// counter is a server with its pool.
type counter struct {
	*lending.Server
	pool *herd
	log  []string
}

func open(t *testing.T, atOnce int) *counter {
	t.Helper()
	r := &counter{pool: &herd{dir: t.TempDir(), there: map[string]bool{}}}
	r.Server = lending.Open(lending.Options{Pool: r.pool, AtOnce: atOnce, Log: func(line string) { r.log = append(r.log, line) }})
	t.Cleanup(func() {
		r.Close()
		if n := r.pool.left(); n > 0 {
			t.Errorf("%d clusters are left", n)
		}
	})
	return r
}

func learner(id int64) store.Learner {
	return store.Learner{ID: id, Name: fmt.Sprintf("learner-%d", id)}
}

// borrower asks until there is a cluster, and keeps what they were told.
type borrower struct {
	id    int64
	claim string

	mu   sync.Mutex
	told told
}

// told is what a borrower has heard so far.
type told struct {
	places []int
	loan   *borrow.Loan
	err    error
}

func (b *borrower) now() told {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told
}

func (b *borrower) receive(t told) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = t
}

func (r *counter) borrow(ctx context.Context, id int64, claim string) *borrower {
	b := &borrower{id: id, claim: claim}
	go func() {
		var t told
		for mark := ""; t.loan == nil && t.err == nil; b.receive(t) {
			var a borrow.Answer
			a, t.err = r.Claim(ctx, learner(id), claim, mark)
			if t.err == nil && a.Mark != mark {
				t.places = append(t.places, a.Place)
			}
			mark, t.loan = a.Mark, a.Loan
		}
		for t.err == nil { // as borrowers do
			select {
			case <-ctx.Done():
				t.err = ctx.Err()
			case <-time.After(borrow.BeatPeriod):
				t.err = r.Beat(learner(id), claim)
			}
		}
		b.receive(t)
	}()
	return b
}

func ended(err error) string {
	if e, ok := errors.AsType[*borrow.EndedError](err); ok {
		return e.Why
	}
	return fmt.Sprintf("not ended: %v", err)
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestWhoComesFirstIsServedFirstAndAllAreToldTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		var all []*borrower
		for id := range int64(3) {
			all = append(all, r.borrow(t.Context(), id+1, "check"))
			pass(time.Second)
		}
		for i, b := range all {
			pass(creation)
			if b.now().loan == nil || b.now().loan.Cluster.Name != fmt.Sprintf("cluster-%d", i+1) {
				t.Fatalf("learner %d has %v, %v", b.id, b.now().loan, b.now().err)
			}
			for _, later := range all[i+1:] {
				if later.now().loan != nil {
					t.Fatalf("learner %d has a cluster, and it is the turn of learner %d", later.id, b.id)
				}
			}
			r.Return(learner(b.id), b.claim)
		}
		for i, want := range [][]int{{0, 0}, {1, 0, 0}, {2, 1, 0, 0}} {
			if !slices.Equal(all[i].now().places, want) {
				t.Errorf("learner %d was told the places %v, want %v", i+1, all[i].now().places, want)
			}
		}
		if r.pool.most != 1 {
			t.Errorf("%d clusters at once, want 1", r.pool.most)
		}
	})
}

func TestAKeyIsTheBorrowersAndNoClusterIsLentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 2)
		seen := map[string]bool{}
		for round := range 3 {
			for id := range int64(2) {
				b := r.borrow(t.Context(), id, fmt.Sprintf("check-%d", round))
				pass(creation)
				if b.now().loan == nil || seen[b.now().loan.Cluster.Name] || string(b.now().loan.Kubeconfig) != "the key of "+b.now().loan.Cluster.Name {
					t.Fatalf("got %+v, %v", b.now().loan, b.now().err)
				}
				seen[b.now().loan.Cluster.Name] = true
				if text := fmt.Sprintf("%v %+v", *b.now().loan, b.now().loan); strings.Contains(text, "key") || b.now().loan.Cluster.Kubeconfig != "" {
					t.Errorf("a loan shows %q, %q", text, b.now().loan.Cluster.Kubeconfig)
				}
				r.Return(learner(id), b.claim)
				r.Return(learner(id), b.claim) // a second time changes nothing
			}
		}
		if len(r.pool.deleted()) != 6 {
			t.Errorf("deleted: %v, want all six", r.pool.deleted())
		}
	})
}

// Each claim costs the room a cluster, also when it is given back at once.
func TestWhoClaimsInARowIsSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		claim := func(id int64, name string) (wait time.Duration) {
			_, err := r.Claim(t.Context(), learner(id), name, "")
			if tooMany, ok := errors.AsType[*lending.TooManyError](err); ok {
				return tooMany.Wait
			}
			if err != nil {
				t.Fatal(err)
			}
			r.Return(learner(id), name)
			return 0
		}
		taken, wait := 0, time.Duration(0)
		for i := range 50 {
			if w := claim(1, fmt.Sprintf("check-%d", i)); w == 0 {
				taken++
			} else {
				wait = w
			}
		}
		if taken != 5 {
			t.Errorf("%d of 50 claims were taken, want 5", taken)
		}
		if w := claim(2, "check"); w > 0 {
			t.Errorf("somebody else has to wait for %s", w)
		}
		pass(wait)
		if w := claim(1, "after-a-while"); wait <= 0 || w > 0 {
			t.Errorf("after the %s that it was told, it has to wait for another %s", wait, w)
		}
		pass(time.Hour)
		for range 20 {
			if _, err := r.Claim(t.Context(), learner(1), "the-same", ""); err != nil {
				t.Fatalf("asking how far a claim is counts as one: %v", err)
			}
		}
		pass(creation)
	})
}

// A learner who asks twice waits twice.
func TestALearnerHasOneClusterAndOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 3)
		first := r.borrow(t.Context(), 1, "first")
		pass(creation)
		second := r.borrow(t.Context(), 1, "second")
		pass(creation)
		third := r.borrow(t.Context(), 1, "third")
		pass(3 * creation)
		if first.now().loan == nil || second.now().loan != nil || third.now().loan != nil || r.pool.made != 1 {
			t.Fatalf("first %v, second %v, third %v, %d made", first.now().loan, second.now().loan, third.now().loan, r.pool.made)
		}
		if got := ended(second.now().err); !strings.Contains(got, "another check of yours") {
			t.Errorf("the second is told: %s", got)
		}
		a, err := r.Claim(t.Context(), learner(1), "third", "")
		if err != nil || !a.Held || a.Place != 1 {
			t.Errorf("the third is told %+v, %v", a, err)
		}
		if got := r.Claims(learner(1)); !slices.Equal(got, []string{"first", "third"}) {
			t.Errorf("claims: %v", got)
		}
		r.Return(learner(1), "first")
		pass(creation)
		if third.now().loan == nil {
			t.Errorf("the third waits still: %v", third.now().err)
		}
	})
}

// Somebody who still has a cluster keeps nobody else from getting one.
func TestWhoHasOneLetsOthersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 2)
		r.borrow(t.Context(), 1, "first")
		pass(creation)
		r.borrow(t.Context(), 1, "second")
		pass(time.Second)
		other := r.borrow(t.Context(), 2, "check")
		pass(creation)
		if other.now().loan == nil {
			t.Errorf("the other one waits behind somebody who has a cluster: %v", other.now().err)
		}
	})
}

// An answer that is lost on the way is asked for again.
func TestTheAnswerToAClaimIsTheSameAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		b := r.borrow(t.Context(), 1, "check")
		pass(creation)
		a, err := r.Claim(t.Context(), learner(1), "check", "")
		if err != nil || a.Loan != b.now().loan || r.pool.made != 1 {
			t.Errorf("again: %+v, %v, %d made", a, err, r.pool.made)
		}
	})
}

func TestWhoFallsSilentLosesClusterAndPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		ctx, vanish := context.WithCancel(t.Context())
		r.borrow(ctx, 1, "check")
		pass(creation)
		r.borrow(ctx, 2, "check")
		pass(time.Second)
		last := r.borrow(t.Context(), 3, "check")
		pass(time.Second)
		vanish()
		pass(lending.Silence - 2*time.Second)
		if len(r.pool.deleted()) > 0 {
			t.Fatal("the cluster was taken back before the time for silence was over")
		}
		pass(4*time.Second + creation)
		if last.now().loan == nil || !slices.Equal(r.pool.deleted(), []string{"cluster-1"}) {
			t.Errorf("the last one has %v, deleted: %v", last.now().loan, r.pool.deleted())
		}
		for id := range int64(2) {
			if got := ended(r.Beat(learner(id+1), "check")); !strings.Contains(got, "nothing was heard") {
				t.Errorf("learner %d, who comes back, is told: %s", id+1, got)
			}
		}
		if log := strings.Join(r.log, "\n"); !strings.Contains(log, "took the cluster of learner-1 back: nothing was heard") {
			t.Errorf("the instructor is told: %s", log)
		}
	})
}

// A long check is not a silent one, until its time is over.
func TestNoCheckHasAClusterForLongerThanTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		b := r.borrow(t.Context(), 1, "check")
		pass(creation)
		pass(lending.Longest - time.Minute)
		if b.now().err != nil {
			t.Fatalf("taken back too soon: %v", b.now().err)
		}
		pass(2 * time.Minute)
		if got := ended(b.now().err); !strings.Contains(got, "15 minutes") || r.pool.left() > 0 {
			t.Errorf("the borrower is told: %s; %d are left", got, r.pool.left())
		}
	})
}

// Ctrl-C of somebody who waits, and of somebody for whom a cluster is just being made.
func TestWhoGivesUpFreesThePlaceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		one, two := r.borrow(t.Context(), 1, "check"), r.borrow(t.Context(), 2, "check")
		pass(time.Second)
		three := r.borrow(t.Context(), 3, "check")
		pass(time.Second)
		first, second := one, two
		if len(one.now().places) == 1 && one.now().places[0] != 0 {
			first, second = two, one
		}
		r.Return(learner(second.id), "check")
		r.Return(learner(first.id), "check")
		pass(creation)
		if three.now().loan == nil || r.pool.made != 1 {
			t.Errorf("the third has %v, %d made", three.now().loan, r.pool.made)
		}
		if got := ended(second.now().err); !strings.Contains(got, "given back") {
			t.Errorf("who gave up is told: %s", got)
		}
	})
}

func TestAClusterForSomebodyWhoHasGoneIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		r.pool.stubborn = true
		r.borrow(t.Context(), 1, "check")
		pass(time.Second)
		r.Return(learner(1), "check")
		pass(creation)
		if !slices.Equal(r.pool.deleted(), []string{"cluster-1"}) {
			t.Errorf("deleted: %v", r.pool.deleted())
		}
	})
}

// A claim that arrives after its own end, which overtook it, gets nothing.
func TestAClaimThatCameTooLateGetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		r.Return(learner(1), "check")
		if _, err := r.Claim(t.Context(), learner(1), "check", ""); !strings.Contains(ended(err), "given back") {
			t.Errorf("it is told %v", err)
		}
		if got := r.Claims(learner(1)); len(got) > 0 {
			t.Errorf("claims: %v", got)
		}
	})
}

func TestNobodyReachesAnotherOnesCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		b := r.borrow(t.Context(), 1, "check")
		pass(creation)
		if _, err := r.Lent(learner(2), "check"); err == nil {
			t.Error("somebody else is told of the cluster")
		}
		if err := r.Beat(learner(2), "check"); err == nil {
			t.Error("somebody else's beat counts")
		}
		r.Return(learner(2), "check")
		a, err := r.Claim(t.Context(), learner(3), "check", "")
		if err != nil || a.Loan != nil {
			t.Errorf("a claim of the same name gets %v, %v", a.Loan, err)
		}
		if b.now().err != nil || r.pool.left() != 1 {
			t.Errorf("the borrower's cluster is gone: %v", b.now().err)
		}
	})
}

func TestTheEndTakesEverythingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 2)
		lent := r.borrow(t.Context(), 1, "check")
		pass(creation)
		r.borrow(t.Context(), 2, "check") // one is being made for them
		waits := r.borrow(t.Context(), 3, "check")
		pass(time.Second)
		if n := r.Close(); n != 1 {
			t.Errorf("Close() = %d, want 1", n)
		}
		if r.pool.left() > 0 || r.pool.made != 1 {
			t.Errorf("%d are left, %d were made", r.pool.left(), r.pool.made)
		}
		pass(borrow.BeatPeriod)
		for _, b := range []*borrower{lent, waits} {
			if got := ended(b.now().err); !strings.Contains(got, "server has ended") {
				t.Errorf("learner %d is told: %s", b.id, got)
			}
		}
		if _, err := r.Claim(t.Context(), learner(4), "check", ""); !strings.Contains(ended(err), "server has ended") {
			t.Errorf("who comes later is told %v", err)
		}
	})
}

// What is wrong with the room's machine is told there, and the next one in the queue has another try.
func TestAClusterThatCannotBeMadeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, 1)
		r.pool.barren = errors.New("no space on /srv/engine")
		b := r.borrow(t.Context(), 1, "check")
		pass(creation)
		if got := ended(b.now().err); !strings.Contains(got, "could not make a cluster") || strings.Contains(got, "/srv") {
			t.Errorf("the learner is told: %s", got)
		}
		if log := strings.Join(r.log, "\n"); !strings.Contains(log, "no cluster for learner-1: no space on /srv/engine") {
			t.Errorf("the instructor is told: %s", log)
		}
		r.pool.mu.Lock()
		r.pool.barren = nil
		r.pool.mu.Unlock()
		next := r.borrow(t.Context(), 1, "again")
		pass(creation)
		if next.now().loan == nil {
			t.Errorf("the next one has nothing: %v", next.now().err)
		}
	})
}
