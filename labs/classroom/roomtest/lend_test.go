//go:build linux

package roomtest

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/classroom/board/certificate"
	boardroom "github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/server"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/lending"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/roomclient/borrow"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// TestVerdictsOnBorrowedClusters judges a learner who has nothing but the address of a room and a token. Lab 5 asks
// the most of a provider: a controller manager that knows the learner's kind.
func TestVerdictsOnBorrowedClusters(t *testing.T) {
	c, err := course.Load(repository)
	if err != nil {
		t.Fatal(err)
	}
	r := lend(t, c)
	state := t.TempDir()
	built, err := verdict.BuildTools(t.Context(), c.Root, state)
	if err != nil {
		t.Fatal(err)
	}
	workspace := filepath.Join(t.TempDir(), "workspace")
	solution, err := c.Render(5)
	if err == nil {
		err = solution.WriteTo(workspace)
	}
	if err != nil {
		t.Fatal(err)
	}
	provider := borrow.New(state, roomclient.Config{URL: r.url, Key: r.key, Token: r.token}, borrow.Options{
		Progress: func(line string) { t.Log(line) },
		Instead:  func() (string, string) { return "CLUSTER=embedded make lab-5", "" },
	})
	owned := clusters.NewOwned(state, provider)
	borrowed := pool.Start(owned, pool.Options{Progress: func(line string) { t.Log(line) }})
	judge := func(ready func()) *verdict.Result {
		j := verdict.Judge{
			Tools: built, Course: c, State: state, Cache: t.TempDir(), Workspace: workspace, Clusters: owned, Pool: borrowed,
			Progress: func(line string) { t.Log(line) }, Ready: ready,
		}
		results, err := j.Check(t.Context(), []int{5})
		if err != nil {
			t.Fatal(err)
		}
		return results[0]
	}

	passed := judge(nil)
	if passed.Verdict != verdict.Pass || passed.Cluster.Provider != embedded.Identity {
		t.Errorf("the solution is %s on %+v: %+v %+v", passed.Verdict, passed.Cluster, passed.Environment, passed.Checks)
	}

	// The room ends while the checks run.
	lost := judge(func() { go r.end(t) })
	if lost.Verdict != verdict.Environment || !strings.Contains(lost.Environment.Finding, "the room took the cluster back") ||
		!strings.Contains(lost.Environment.Fix, "CLUSTER=embedded make lab-5") {
		t.Errorf("%s: %+v", lost.Verdict, lost.Environment)
	}
	<-r.ended
	if err := borrowed.Close(); err != nil {
		t.Error(err)
	}
	if left, err := r.owned.List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left on the room's machine: %v, %v", left, err)
	}
}

// lendingRoom is a room's server that lends embedded control planes.
type lendingRoom struct {
	url, key, token string
	owned           *clusters.Owned
	lender          *lending.Server
	pool            *pool.Pool
	ended           chan struct{} // closed when nothing is lent any more
}

func lend(t *testing.T, c *course.Course) *lendingRoom {
	t.Helper()
	state := t.TempDir()
	provider, err := embedded.New(state, c.Root, cacheDir(t))
	if err != nil {
		t.Fatal(err)
	}
	r := &lendingRoom{owned: clusters.NewOwned(state, provider), ended: make(chan struct{})}
	r.pool = pool.Start(r.owned, pool.Options{Progress: func(line string) { t.Log(line) }})
	r.lender = lending.Open(lending.Options{Pool: r.pool, Provider: provider, AtOnce: 1, Log: func(line string) { t.Log(line) }})
	t.Cleanup(func() { // of a test that failed
		r.lender.Close()
		if err := r.pool.Close(); err != nil {
			t.Error(err)
		}
	})

	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	given, err := s.AddLearnerToken(t.Context(), "Ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, key, err := certificate.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(t.Context(), server.Config{
		Store: s, Course: c, Rules: boardroom.DefaultRules, Certificate: pair, Learners: r.lender.Routes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	r.url, r.key, r.token = "https://"+listener.Addr().String(), key, given.Reveal()
	return r
}

// end takes back what is lent, as the end of the room's server does.
func (r *lendingRoom) end(t *testing.T) {
	defer close(r.ended)
	r.lender.Close()
	if err := r.pool.Close(); err != nil {
		t.Error(err)
	}
}
