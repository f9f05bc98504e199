package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	boardroom "github.com/example/operator-lab/labs/internal/board/room"
	"github.com/example/operator-lab/labs/internal/board/token"
	"github.com/example/operator-lab/labs/internal/classroom"
	"github.com/example/operator-lab/labs/internal/modules"
	"github.com/example/operator-lab/labs/internal/rehearsal"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// rehearsedLearner is who does the labs in a rehearsal.
	rehearsedLearner = "Rehearsal"
	// askTimeout is how long a server on this machine may take to answer.
	askTimeout = 20 * time.Second
	// rehearsalTokens is how long the tokens of a rehearsal are good.
	rehearsalTokens = time.Hour
)

// servedRoom is a room's server under way, on a board of its own.
type servedRoom struct {
	url   string
	board *board
	stop  context.CancelFunc
	ended chan error
}

func (s *servedRoom) end() error {
	s.stop()
	return <-s.ended
}

// askServer serves the room as `classroom serve` does, with a state of its own, and opens it by its address.
func (r *rehearse) askServer(ctx context.Context) []rehearsal.Finding {
	own := *r.app
	own.state, own.out, own.err = r.rehearsed(), io.Discard, io.Discard // what it says, other checks say
	opened := make(chan net.Addr, 1)
	b := &board{
		app: &own, dir: filepath.Join(own.state, boardDir), listen: r.bind, addr: r.room.Address, rules: boardroom.DefaultRules,
		valid: rehearsalTokens, opened: func(addr net.Addr) { opened <- addr },
	}
	serving, stop := context.WithCancel(ctx)
	s := &servedRoom{board: b, stop: stop, ended: make(chan error, 1)}
	go func() { s.ended <- b.serveRoom(serving) }()
	select {
	case addr := <-opened:
		s.url = "http://" + addr.String()
	case err := <-s.ended:
		stop()
		if err == nil {
			err = context.Cause(ctx)
		}
		return []rehearsal.Finding{rehearsal.Failed(err, "make classroom-serve")}
	}
	r.served = s
	status, _, err := get(ctx, s.url+"/", nil)
	if err == nil && status != http.StatusUnauthorized {
		err = fmt.Errorf("%s answers with status %d instead of asking for a token", s.url, status)
	}
	if err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make classroom-serve")}
	}
	text := s.url + " answers"
	if r.room.Address != "" {
		text += "; whether a firewall is between, only a second machine can tell"
	}
	return []rehearsal.Finding{rehearsal.Good("%s", text)}
}

// get asks a server in this room, as an instructor where there is a token.
func get(ctx context.Context, url string, as *token.Token) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	if as != nil {
		request.Header.Set("Authorization", "Bearer "+as.Reveal())
	}
	// The room is not behind anybody's proxy, and sends nobody elsewhere with a token.
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// servesCourse says whether a room's server is at that address.
func servesCourse(ctx context.Context, url string) bool {
	status, _, err := get(ctx, url+coursePath, nil)
	return err == nil && status == http.StatusOK
}

// askHandout writes a handout for one learner with the command that writes them all, and unpacks it.
func (r *rehearse) askHandout(ctx context.Context) []rehearsal.Finding {
	archive, err := r.handOut(ctx)
	if err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make classroom-handouts")}
	}
	if r.desk, err = r.sit(ctx, r.dir, archive, r.served.url); err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make classroom-handouts")}
	}
	if err := r.opens(ctx, r.desk.Kubeconfig()); err != nil {
		return []rehearsal.Finding{rehearsal.Failed(fmt.Errorf("its kubeconfig does not open the cluster: %w", err), "make doctor")}
	}
	return []rehearsal.Finding{rehearsal.Good("unpacked, the course fetched, and its kubeconfig opens the cluster")}
}

func (r *rehearse) handOut(ctx context.Context) (archive string, err error) {
	state := r.rehearsed()
	one, err := classroom.Load(state) // nobody yet
	if err != nil {
		return "", err
	}
	learner := classroom.Learner{ID: rehearsalPurpose, Name: rehearsedLearner, Cluster: r.made.Name}
	one.Provider, one.Address, one.Learners = r.room.Provider, r.room.Address, []classroom.Learner{learner}
	if err := one.Save(state); err != nil {
		return "", err
	}
	if err := os.MkdirAll(learner.Dir(state), 0o700); err != nil {
		return "", err
	}
	if err := os.Symlink(r.made.Kubeconfig, learner.Kubeconfig(state)); err != nil {
		return "", err
	}
	if err := (&handouts{board: r.served.board, server: r.served.url}).write(ctx); err != nil {
		return "", err
	}
	return filepath.Join(state, handoutsDir, learner.ID+".zip"), nil
}

// askDownload has a Go command with an empty cache find what a learner's machine compiles first, with nothing but the
// room in reach.
func (r *rehearse) askDownload(ctx context.Context) []rehearsal.Finding {
	const first = 2 // the workspace and the lab; the embedded control plane is much more, and changes less
	needs := slices.Clone(r.needs[:min(first, len(r.needs))])
	for i := range needs {
		needs[i].Systems, needs[i].Tidied = []string{runtime.GOOS}, false
	}
	fetched := "nothing"
	log := func(line string) {
		if _, what, ok := strings.Cut(line, "has now fetched "); ok {
			fetched = what
		}
	}
	started := time.Now()
	if err := modules.Check(ctx, r.served.url+modulesPath, r.dir, needs, log); err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, mendModules)}
	}
	return []rehearsal.Finding{rehearsal.Good("the room gave %s, all that is needed here, in %.0f s",
		fetched, time.Since(started).Seconds())}
}

// askFirstLab does lab 1 as the handout says: red as handed out, green with our solution. What it judges needs no Pods,
// so the quickest cluster will do.
func (r *rehearse) askFirstLab(ctx context.Context) []rehearsal.Finding {
	cluster := r.room.Provider
	if missing, err := r.missing(ctx); err == nil && len(missing) == 0 {
		cluster = onEmbedded
	}
	red, bad := r.judge(ctx, 1, verdict.Fail, "as handed out", cluster)
	if bad != nil {
		return []rehearsal.Finding{*bad}
	}
	if err := r.desk.Solve(ctx, 1); err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make solve-1 WORKSPACE=/tmp/rehearsal")}
	}
	green, bad := r.judge(ctx, 1, verdict.Pass, "with our solution", cluster)
	if bad != nil {
		return []rehearsal.Finding{*bad}
	}
	return []rehearsal.Finding{rehearsal.Good("red as handed out after %.0f s, green with our solution after %.0f s",
		red.Seconds, green.Seconds)}
}

// askLaterLab judges a later lab on a cluster like those of the learners.
func (r *rehearse) askLaterLab(ctx context.Context) []rehearsal.Finding {
	n := r.later()
	if err := r.desk.Solve(ctx, n); err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, fmt.Sprintf("make solve-%d WORKSPACE=/tmp/rehearsal", n))}
	}
	green, bad := r.judge(ctx, n, verdict.Pass, "with our solution", r.room.Provider)
	if bad != nil {
		return []rehearsal.Finding{*bad}
	}
	return []rehearsal.Finding{rehearsal.Good("green with our solution after %.0f s, on %s %s",
		green.Seconds, r.room.Provider, green.Cluster.Version)}
}

// judge asks for a verdict at the learner's desk, and says what is bad about it when it is not the one that is wanted.
func (r *rehearse) judge(
	ctx context.Context, lab int, want verdict.Verdict, what, cluster string,
) (*verdict.Result, *rehearsal.Finding) {
	again := fmt.Sprintf("make lab-%d WORKSPACE=/tmp/rehearsal", lab)
	result, err := r.desk.Judge(ctx, lab, "CLUSTER="+cluster)
	if err != nil {
		bad := rehearsal.Failed(err, again)
		return nil, &bad
	}
	r.answers[result.Run] = result
	switch result.Verdict {
	case want:
		return result, nil
	case verdict.Environment:
		bad := rehearsal.Bad(result.Environment.Mend, "%s it says environment: %s", what, result.Environment.Finding)
		return nil, &bad
	}
	bad := rehearsal.Bad(again, "%s it says %s%s", what, result.Verdict, firstRed(result))
	return nil, &bad
}

// firstRed is the check that an unwanted verdict is about.
func firstRed(r *verdict.Result) string {
	if r.Build != nil {
		return ", it does not compile"
	}
	i := slices.IndexFunc(r.Checks, func(c verdict.Check) bool { return c.State == verdict.Failed })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf(", %s: expected %s, saw %s", r.Checks[i].ID, r.Checks[i].Expected, r.Checks[i].Seen)
}

// askBoard looks whether the instructor sees what the learner saw.
func (r *rehearse) askBoard(ctx context.Context) []rehearsal.Finding {
	shown, err := r.onTheBoard(ctx)
	if err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make classroom-serve")}
	}
	return []rehearsal.Finding{compareBoard(r.answers, shown)}
}

// compareBoard compares what the learner saw with what the board shows, by their runs.
func compareBoard(answers map[string]*verdict.Result, shown map[string]verdict.Verdict) rehearsal.Finding {
	const mend = "make classroom-serve"
	var late []string
	for run, answer := range answers {
		switch got, ok := shown[run]; {
		case ok && got != answer.Verdict:
			return rehearsal.Bad(mend, "it shows lab %d as %s, and the learner saw %s", answer.Lab, got, answer.Verdict)
		case !ok:
			late = append(late, fmt.Sprintf("lab %d", answer.Lab))
		}
	}
	all := count(len(answers), "verdict")
	switch {
	case len(late) == len(answers):
		return rehearsal.Bad(mend, "it has heard nothing of %s", rehearsedLearner)
	case len(late) > 0:
		// A check does not wait for the board.
		return rehearsal.Doubt("", "it shows %d of %s; the next check would send that of %s",
			len(answers)-len(late), all, strings.Join(late, ", "))
	}
	return rehearsal.Good("it shows %s as the learner saw them", all)
}

// onTheBoard are the verdicts of the learner that an instructor is shown, by their runs.
func (r *rehearse) onTheBoard(ctx context.Context) (shown map[string]verdict.Verdict, err error) {
	s, err := r.served.board.open(ctx)
	if err != nil {
		return nil, err
	}
	instructor, err := s.AddInstructorToken(ctx, rehearsedLearner, rehearsalTokens)
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	status, page, err := get(ctx, r.served.url+"/", &instructor)
	if err == nil && (status != http.StatusOK || !strings.Contains(string(page), rehearsedLearner)) {
		err = fmt.Errorf("the page of the board (status %d) does not show the learner", status)
	}
	if err != nil {
		return nil, err
	}
	_, exported, err := get(ctx, r.served.url+"/export/json", &instructor)
	if err != nil {
		return nil, err
	}
	return verdictsOf(exported)
}

// verdictsOf reads them from the board's export.
func verdictsOf(exported []byte) (map[string]verdict.Verdict, error) {
	var all struct {
		Learners []struct {
			Name string
			Labs []struct {
				History []struct {
					Run     string
					Verdict verdict.Verdict
				}
			}
		}
	}
	if err := json.Unmarshal(exported, &all); err != nil {
		return nil, fmt.Errorf("read what the board exports: %w", err)
	}
	found := map[string]verdict.Verdict{}
	for _, l := range all.Learners {
		for _, lab := range l.Labs {
			for _, attempt := range lab.History {
				if l.Name == rehearsedLearner {
					found[attempt.Run] = attempt.Verdict
				}
			}
		}
	}
	return found, nil
}
