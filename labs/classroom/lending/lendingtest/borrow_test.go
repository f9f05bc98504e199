package lendingtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/lending"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/roomclient/borrow"
)

const key = `{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}],
contexts: [{name: x, context: {cluster: x, user: x}}], users: [{name: x, user: {token: secret}}]}`

// machine is that of the room: a pool, its provider, and the server that lends.
type machine struct {
	clusters.Provider // the rest of it, which is not asked for
	lender            *lending.Server
	server            *httptest.Server
	dir               string

	mu    sync.Mutex
	made  int
	there int
	key   string
	beats chan string // of whom something was heard
	quiet bool        // whether connections are cut
	busy  int         // how many requests are told to come again
	after string      // when
}

func (m *machine) Claim(context.Context) (*clusters.Cluster, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	m.there++
	path := filepath.Join(m.dir, fmt.Sprint(m.made))
	if err := os.WriteFile(path, []byte(m.key), 0o600); err != nil {
		return nil, false, err
	}
	return &clusters.Cluster{Name: fmt.Sprintf("theirs-%d", m.made), Provider: "kind", Version: "v1.36.3", Kubeconfig: path, Nodes: 1, RealPods: true, Logs: true}, false, nil
}

func (m *machine) Discard(string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.there--
}

func (m *machine) Nodes(_ context.Context, name string) ([]clusters.Node, error) {
	return []clusters.Node{{Name: name + "-control-plane", Running: true}}, nil
}

func (m *machine) left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.there
}

func (m *machine) cut(quiet bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quiet = quiet
}

// serve lends one cluster at a time. A token is the name of its learner.
func serve(t *testing.T) *machine {
	t.Helper()
	m := &machine{dir: t.TempDir(), key: key, beats: make(chan string, 100)}
	m.lender = lending.Open(lending.Options{Pool: m, Provider: m, AtOnce: 1})
	mux := http.NewServeMux()
	for pattern, handler := range m.lender.Routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			m.mu.Lock()
			quiet, busy := m.quiet, m.busy > 0
			if busy {
				m.busy--
			}
			m.mu.Unlock()
			if busy {
				w.Header().Set("Retry-After", m.after)
				http.Error(w, "{}", http.StatusTooManyRequests)
				return
			}
			if quiet {
				panic(http.ErrAbortHandler) // the connection is cut
			}
			name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			if name == "nobody" {
				http.Error(w, "{}", http.StatusUnauthorized)
				return
			}
			handler(w, r, store.Holder{Learner: store.Learner{ID: int64(len(name)), Name: name}})
			if strings.HasSuffix(r.URL.Path, borrow.BeatPath) {
				m.beats <- name
			}
		})
	}
	m.server = httptest.NewTLSServer(mux)
	t.Cleanup(func() {
		m.lender.Close()
		m.server.Close()
		if n := m.left(); n > 0 {
			t.Errorf("%d clusters are left", n)
		}
	})
	return m
}

// learner is somebody with a machine of their own.
type learner struct {
	*borrow.Provider
	config roomclient.Config
	state  string
	owned  *clusters.Owned
	told   chan string
}

func (m *machine) learner(t *testing.T, name string) *learner {
	t.Helper()
	return m.learnerWho(t, name, borrow.BeatPeriod)
}

// learnerWho says so often that they are there.
func (m *machine) learnerWho(t *testing.T, name string, beat time.Duration) *learner {
	t.Helper()
	l := &learner{config: roomclient.Config{URL: m.server.URL + "/", Key: roomclient.KeyOf(m.server.Certificate()), Token: name}, state: t.TempDir(), told: make(chan string, 100)}
	l.Provider = borrow.New(l.state, l.config, borrow.Options{
		Progress: func(line string) { l.told <- line },
		Instead:  func() (string, string) { return "CLUSTER=embedded make lab-4", "all its checks run there" },
		Beat:     beat,
	})
	l.owned = clusters.NewOwned(l.state, l.Provider)
	return l
}

func (l *learner) create(ctx context.Context, t *testing.T) *clusters.Cluster {
	t.Helper()
	c, err := l.owned.Create(ctx, "check", clusters.Spec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// problem wants err to say something in one line, and to come with a command that helps.
func problem(t *testing.T, err error, what, fix string) {
	t.Helper()
	p, ok := errors.AsType[*clusters.Problem](err)
	if !ok || !strings.Contains(p.Finding(), what) || !strings.Contains(p.Fix, fix) || strings.Contains(p.Error(), "\n") {
		t.Errorf("got %v, want %q, fixed by %q", err, what, fix)
	}
}

func TestABorrowedClusterIsOneLikeAnyOther(t *testing.T) {
	m := serve(t)
	l := m.learner(t, "Ada")
	c := l.create(t.Context(), t)
	if c.Provider != "kind" || c.Version != "v1.36.3" || !c.RealPods || c.Nodes != 1 || c.Logs {
		t.Errorf("got %+v", c)
	}
	if info, err := os.Stat(c.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v", info, err)
	}
	if names, err := l.List(t.Context()); err != nil || len(names) != 1 || names[0] != c.Name {
		t.Errorf("List() = %v, %v", names, err)
	}
	nodes, err := l.Nodes(t.Context(), c.Name)
	if err != nil || len(nodes) != 1 || nodes[0].Name != "theirs-1-control-plane" {
		t.Errorf("Nodes() = %v, %v", nodes, err)
	}
	if err := l.RestartControllers(t.Context(), c.Name); err != nil { // which this room cannot
		t.Error(err)
	}
	for name, err := range map[string]error{
		"logs": l.CollectLogs(t.Context(), c.Name, t.TempDir()), "images": l.LoadImageArchive(t.Context(), c.Name, "x.tar"),
	} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.owned.Delete(t.Context(), c.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Kubeconfig); !errors.Is(err, os.ErrNotExist) || m.left() > 0 {
		t.Errorf("the key: %v, %d clusters are left", err, m.left())
	}
}

func TestABorrowerSaysThatTheyAreThere(t *testing.T) {
	m := serve(t)
	l := m.learnerWho(t, "Ada", time.Millisecond)
	c := l.create(t.Context(), t)
	for range 3 {
		if who := <-m.beats; who != "Ada" {
			t.Errorf("a beat of %s", who)
		}
	}
	if err := l.owned.Delete(t.Context(), c.Name); err != nil {
		t.Error(err)
	}
}

func TestWhoWaitsIsToldTheirPlaceAndWhatAnswersWithoutWaiting(t *testing.T) {
	m := serve(t)
	ada, bo := m.learner(t, "Ada"), m.learner(t, "Bo")
	first := ada.create(t.Context(), t)
	got := make(chan *clusters.Cluster)
	go func() {
		c, err := bo.owned.Create(t.Context(), "check", clusters.Spec{}, false)
		if err != nil {
			t.Error(err)
		}
		got <- c
	}()
	const want = "your place in the queue is 1; CLUSTER=embedded make lab-4 answers without waiting (all its checks run there)"
	if line := <-bo.told; !strings.Contains(line, want) {
		t.Errorf("told %q", line)
	}
	if err := ada.owned.Delete(t.Context(), first.Name); err != nil {
		t.Fatal(err)
	}
	c := <-got
	if c == nil {
		t.FailNow()
	}
	if err := bo.owned.Delete(t.Context(), c.Name); err != nil {
		t.Error(err)
	}
}

func TestCtrlCWhileWaitingFreesThePlace(t *testing.T) {
	m := serve(t)
	ada, bo := m.learner(t, "Ada"), m.learner(t, "Bo")
	first := ada.create(t.Context(), t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := bo.Create(ctx, "check", clusters.Spec{})
		ended <- err
	}()
	<-bo.told
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if names, err := bo.List(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("claims left: %v, %v", names, err)
	}
	if err := ada.owned.Delete(t.Context(), first.Name); err != nil {
		t.Error(err)
	}
}

// What the pool of a command claims and discards is borrowed and given back.
func TestAPoolOfBorrowedClusters(t *testing.T) {
	m := serve(t)
	l := m.learner(t, "Ada")
	p := pool.Start(l.owned, pool.Options{Size: 1}) // they cannot wait
	for range 2 {
		c, pooled, err := p.Claim(t.Context())
		if err != nil || pooled {
			t.Fatalf("claim: %v, pooled %v", err, pooled)
		}
		p.Discard(c.Name)
	}
	if err := p.Close(); err != nil || m.left() > 0 || m.made != 2 {
		t.Errorf("%v, %d left of %d", err, m.left(), m.made)
	}
}

func TestAClusterThatIsTakenBackIsTheRoomsDoing(t *testing.T) {
	m := serve(t)
	l := m.learner(t, "Ada")
	c := l.create(t.Context(), t)
	m.lender.Close()
	_, err := l.Nodes(t.Context(), c.Name)
	problem(t, err, "the room took the cluster back: the room's server has ended", "run it again, or CLUSTER=embedded make lab-4")
	m.server.Close()
	_, err = l.Nodes(t.Context(), c.Name)
	problem(t, err, "the room's server has ended, and took the cluster back", "run it again, or CLUSTER=embedded make lab-4")
	problem(t, l.owned.Delete(t.Context(), c.Name), "takes it back by itself", "rm -r")
}

// A Wi-Fi that comes and goes says nothing about the cluster.
func TestWhileTheRoomCannotBeAskedNothingIsKnown(t *testing.T) {
	m := serve(t)
	l := m.learner(t, "Ada")
	c := l.create(t.Context(), t)
	m.cut(true)
	if _, err := l.Nodes(t.Context(), c.Name); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Nodes() = %v", err)
	}
	m.cut(false)
	if err := l.owned.Delete(t.Context(), c.Name); err != nil {
		t.Error(err)
	}
}

func TestABusyServerIsAskedAgain(t *testing.T) {
	m := serve(t)
	m.busy, m.after = 1, "1"
	l := m.learner(t, "Ada")
	c := l.create(t.Context(), t)
	if err := l.owned.Delete(t.Context(), c.Name); err != nil {
		t.Error(err)
	}
	for _, after := range []string{"1", "never", "-5", "36028797018963968", "9300000000"} { // the last two are too many nanoseconds
		m.mu.Lock()
		m.busy, m.after = 1000, after
		m.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := l.List(ctx)
		cancel()
		problem(t, err, "the room's server does not answer", "CLUSTER=embedded")
		m.mu.Lock()
		if m.busy != 999 {
			t.Errorf("Retry-After: %s is answered by %d more requests at once", after, 999-m.busy)
		}
		m.busy = 0
		m.mu.Unlock()
	}
}

func TestAServerThatIsAwayForAMomentKeepsThePlace(t *testing.T) {
	m := serve(t)
	ada, bo := m.learner(t, "Ada"), m.learner(t, "Bo")
	first := ada.create(t.Context(), t)
	got := make(chan error)
	go func() {
		c, err := bo.owned.Create(t.Context(), "check", clusters.Spec{}, false)
		if err == nil {
			err = bo.owned.Delete(t.Context(), c.Name)
		}
		got <- err
	}()
	<-bo.told
	m.cut(true)
	m.server.CloseClientConnections()
	if line := <-bo.told; !strings.Contains(line, "does not answer; trying again") {
		t.Errorf("told %q", line)
	}
	m.cut(false)
	if err := ada.owned.Delete(t.Context(), first.Name); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestWhyTheRoomLendsNothing(t *testing.T) {
	m := serve(t)
	_, err := m.learner(t, "nobody").owned.Create(t.Context(), "check", clusters.Spec{}, false)
	problem(t, err, "does not know your token", "new handout")

	none := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(none.Close)
	config := roomclient.Config{URL: none.URL, Key: roomclient.KeyOf(none.Certificate()), Token: "Ada"}
	l := borrow.New(t.TempDir(), config, borrow.Options{})
	_, err = l.List(t.Context())
	problem(t, err, "this room lends no clusters", "CLUSTER=auto")

	config.Key = "sha256//" + strings.Repeat("A", 43) + "="
	_, err = borrow.New(t.TempDir(), config, borrow.Options{}).List(t.Context())
	problem(t, err, "another key than your handout says", "CLUSTER=auto needs no room")

	none.Close()
	_, err = l.List(t.Context())
	problem(t, err, "the room's server does not answer", "join the room's network, or CLUSTER=auto")
}

// A kubeconfig can name programs.
func TestAKubeconfigThatNamesAProgramIsNotUsed(t *testing.T) {
	m := serve(t)
	m.key = strings.Replace(key, "token: secret", `exec: {command: reboot, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}`, 1)
	_, err := m.learner(t, "Ada").owned.Create(t.Context(), "check", clusters.Spec{}, false)
	problem(t, err, "is not used here", "tell your instructor")
	if m.left() > 0 {
		t.Error("the cluster was not given back")
	}
}

// What a killed command borrowed is given back by the next one.
func TestTheNextCommandGivesBackWhatAKilledOneBorrowed(t *testing.T) {
	m := serve(t)
	l := m.learner(t, "Ada")
	c := l.create(t.Context(), t)
	next := borrow.New(l.state, l.config, borrow.Options{}) // which knows nothing but the record
	if err := clusters.NewOwned(l.state, next).Delete(t.Context(), c.Name); err != nil {
		t.Error(err)
	}
	if m.left() > 0 {
		t.Error("the cluster was not given back")
	}
}
