package harness

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/fence"
	"github.com/example/operator-lab/labs/harness/recorder"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	pathOutlook   = "/outlook"
	pathBegun     = "/begun"
	pathFailed    = "/failed"
	pathEnded     = "/ended"
	pathRequests  = "/requests"
	pathLog       = "/log"
	pathLogLines  = "/log/lines"
	pathCount     = "/count"
	pathPasses    = "/passes"
	pathTurn      = "/turn"
	pathTurnEnded = "/turn/ended"
)

// stage is where a manager works: the proxy, the manager, and a small server that tells about both. The first process
// has the one for all checks, which the other processes ask, too; a check that is [Apart] has its own.
type stage struct {
	namespace string // the only one that the manager sees, "" for all but those that another one works in
	trace     *trace.Watcher
	recorder  *recorder.Recorder
	manager   *Manager
	pulse     *pulse
	hush      context.CancelFunc // ends the pulse
	progress  *progress
	server    *http.Server
	token     string
	address   string
	turns     turns
	workers   int // how often the manager's log said [workersLine] before its last start
}

// openStage starts the proxy, and the manager with its identity. namespace, trace and log are the manager's,
// and known is what its program has said already, nil when nobody has asked.
func openStage(ctx context.Context, namespace string, w *trace.Watcher, log string, known *program) (*stage, error) {
	rec, err := recorder.Start(suite.adminConfig, fenceRule(), viewOf(namespace))
	if err != nil {
		return nil, err
	}
	s := &stage{
		namespace: namespace, trace: w, recorder: rec, pulse: newPulse(rec.Since, answered), progress: newProgress(), token: rand.Text(),
	}
	beating, hush := context.WithCancel(context.Background())
	s.hush = hush
	go s.pulse.beat(beating, namespace)
	s.manager, err = newManager(rec, suite.shared.Token, log, known)
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	s.manager.starts = s.restart
	s.manager.note = func(actor, text string) { s.trace.Note(namespace, actor, text) }
	if err := s.listen(); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	if err := s.manager.Start(suite.config.MemcachedImage); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	s.awaitCaches(ctx)
	return s, nil
}

// awaitCaches returns when the manager knows what there is, so that the checks' objects are news to it. What a manager
// finds when it starts, controller-runtime's queue serves after all news, and while many checks make some, a slow one
// does not come to it (https://github.com/kubernetes-sigs/controller-runtime/issues/3496). A manager that ends, or is
// not so far when a silent one would be given up, gets its checks all the same: they say what is wrong with it.
func (s *stage) awaitCaches(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, SilenceBudget)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for listening := time.Duration(0); s.gone() == nil && !s.knows(listening); {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s.pulse.listens() {
			listening += pollInterval
		}
	}
}

// answered asks the API server for something small.
func answered(ctx context.Context) error {
	return suite.admin.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
}

// workersLine is what controller-runtime's log says when the caches are filled.
const workersLine = "Starting workers"

// knows says whether the manager has filled its caches, after it has asked for what they hold for so long.
func (s *stage) knows(listening time.Duration) bool {
	return s.workersLines() > s.workers || listening > CacheBudget
}

func (s *stage) workersLines() int { return len(s.manager.output.Lines(workersLine)) }

// restart is told that the manager is about to be started.
func (s *stage) restart() {
	s.pulse.restart()
	s.workers = s.workersLines()
}

// fenceIn is what keeps a manager that nobody trusts to its own cluster, in there; a trusted one may do everything that
// it has a right to.
func fenceIn(ctx context.Context) error {
	if suite.config.Launcher == nil || !suite.config.RealPods {
		return nil
	}
	return fence.Install(ctx, suite.admin, suite.config.MemcachedImage)
}

// fenceRule is what does so on the way there.
func fenceRule() recorder.Rule {
	if suite.config.Launcher == nil {
		return nil
	}
	return fence.Refusal
}

func (s *stage) listen() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the other processes: %w", err)
	}
	s.address = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc(pathOutlook, answering(func(r *http.Request) any { return s.outlook(r.URL.Query()) }))
	for path, note := range map[string]func(id string){
		pathBegun: s.progress.begin, pathFailed: s.progress.fail, pathEnded: s.progress.end,
	} {
		mux.HandleFunc(path, answering(func(r *http.Request) any {
			note(r.URL.Query().Get("check"))
			return nil
		}))
	}
	for path, turn := range map[string]func(check string) bool{pathTurn: s.turn, pathTurnEnded: s.turnEnded} {
		mux.HandleFunc(path, answering(func(r *http.Request) any { return turn(r.URL.Query().Get("check")) }))
	}
	mux.HandleFunc(pathLog, answering(func(*http.Request) any { return s.manager.LogTail() }))
	mux.HandleFunc(pathLogLines, answering(func(r *http.Request) any { return s.manager.output.Lines(r.URL.Query().Get("text")) }))
	mux.HandleFunc(pathPasses, answering(func(r *http.Request) any { return s.manager.passes(r.Context()) }))
	mux.HandleFunc(pathCount, answering(func(*http.Request) any { return s.recorder.Count() }))
	mux.HandleFunc(pathRequests, answering(func(r *http.Request) any {
		since, _ := strconv.Atoi(r.URL.Query().Get("since"))
		return s.recorder.Since(since)
	}))
	s.server = &http.Server{Handler: s.authorized(mux), ReadHeaderTimeout: time.Second}
	go func() { _ = s.server.Serve(listener) }()
	return nil
}

// gone is the finding about a manager that cannot do its work: it ended, or it runs and has asked the
// API server for nothing since it was started.
func (s *stage) gone() *finding.Finding {
	if f := s.manager.gone(); f != nil {
		return f
	}
	if s.manager.Running() < SilenceBudget || s.recorder.Count() > s.manager.requestsBefore() {
		return nil
	}
	return finding.New(CauseManagerSilent, "the manager reads Memcacheds from the API server",
		"it has been running for %s and has not sent one request: does it start a controller?", SilenceBudget)
}

func (s *stage) endpoint() endpoint { return endpoint{URL: s.address, Token: s.token} }

// authorized keeps the learner's program, which shares the loopback, out of the judge's room.
func (s *stage) authorized(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func answering(answer func(*http.Request) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(answer(r)) }
}

func (s *stage) close(ctx context.Context) error {
	s.hush()
	var errs []error
	if s.manager != nil {
		errs = append(errs, s.manager.Stop(ctx))
	}
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	return errors.Join(append(errs, s.recorder.Stop())...)
}

// TheManager is the learner's manager, for checks that stop or restart it: the check's own where it is [Apart], and the
// one of all others in a Serial check, which runs on the first process, and alone.
func TheManager() (*Manager, error) {
	s, err := ownStage()
	if err != nil {
		return nil, err
	}
	return s.manager, nil
}

// ownStage is the one that the running check may do with as it likes.
func ownStage() (*stage, error) {
	switch {
	case suite.apart != nil:
		return suite.apart, nil
	case suite.stage == nil:
		return nil, errors.New("this check handles the manager and has to be Apart or Serial")
	}
	return suite.stage, nil
}
