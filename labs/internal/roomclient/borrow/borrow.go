// Package borrow gives a learner's machine the clusters that their room lends, as a provider like any other: one is
// made by claiming it, and deleted by giving it back. The learner's machine reaches its API server, and nothing of the
// machine that it runs on; what only that one sees, the room tells.
package borrow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

const (
	// answerTime bounds the answer to a question that the room answers at once, over a weak Wi-Fi.
	answerTime = 10 * time.Second
	// lookTime bounds the look at the machines of a cluster, which is one of many.
	lookTime = 3 * time.Second
	// returnTime is how long a claim may take to be given up after a Ctrl-C. The room finds out by itself, later.
	returnTime = 5 * time.Second
	// pollSlack is what the answer to a claim may take beside the time for which the room waits for news.
	pollSlack = 5 * time.Second
	// absence is for how long it is tried to reach the room's server again while somebody waits. With the question that
	// was lost that is less than the silence for which the room keeps a place.
	absence = 10 * time.Second
	// retryPause is how long to leave a server in peace that could not be reached.
	retryPause = time.Second
)

// identity is the beginning of that of each provider of this package.
const identity = "room/"

// Made says whether a record with that identity is of a cluster that a room lent.
func Made(provider string) bool { return strings.HasPrefix(provider, identity) }

// Options say what a learner is told.
type Options struct {
	// Progress, if it is not nil, is told while a claim waits, in one line each.
	Progress func(line string)
	// Instead, if it is not nil, is the command that does the same without the room, such as "CLUSTER=embedded make
	// lab-4", and what is different then.
	Instead func() (command, difference string)
	// Beat is how often the room is told that its borrower is still there; 0 is [BeatPeriod].
	Beat time.Duration
}

// Provider borrows clusters from a room.
type Provider struct {
	state  string
	config roomclient.Config
	client *http.Client
	opts   Options

	mu    sync.Mutex
	beats map[string]func() // end those of the clusters that are borrowed, by name, and wait until the last has ended
}

var (
	_ clusters.Provider            = (*Provider)(nil)
	_ clusters.NodeInspector       = (*Provider)(nil)
	_ clusters.Identifier          = (*Provider)(nil)
	_ clusters.ControllerRestarter = (*Provider)(nil)
)

// New returns a provider that keeps kubeconfigs under stateDir, of the room in which the learner has that token.
func New(stateDir string, c roomclient.Config, opts Options) *Provider {
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	if opts.Instead == nil {
		opts.Instead = func() (string, string) { return "CLUSTER=auto", "" }
	}
	if opts.Beat == 0 {
		opts.Beat = BeatPeriod
	}
	return &Provider{state: stateDir, config: c, client: c.Client(), opts: opts, beats: map[string]func(){}}
}

// Identity names the room.
func (p *Provider) Identity() string {
	if u, err := url.Parse(p.config.URL); err == nil {
		return identity + u.Host
	}
	return identity
}

// Create claims a cluster under that name, and waits for its turn. What it is like, the room decides.
func (p *Provider) Create(ctx context.Context, name string, _ clusters.Spec) (*clusters.Cluster, error) {
	loan, err := p.await(ctx, name)
	if err == nil {
		var c *clusters.Cluster
		if c, err = p.take(name, loan); err == nil {
			return c, nil
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTime)
	defer cancel()
	_ = p.Delete(ctx, name) // else the room takes it back by itself
	return nil, err
}

// await returns when the cluster is lent. A server that cannot be reached for a while keeps the place in the queue.
func (p *Provider) await(ctx context.Context, name string) (*Loan, error) {
	var last Answer
	var lost time.Time // when the server could not be reached any more
	for {
		a, err := p.claim(ctx, name, last.Mark)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case away(err) && (lost.IsZero() || time.Since(lost) < absence):
			if lost.IsZero() {
				lost = time.Now()
				p.opts.Progress("the room's server does not answer; trying again")
			}
			if err := pause(ctx, retryPause); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, p.explain(name, err)
		case a.Loan != nil:
			return a.Loan, nil
		}
		p.report(last, a)
		last, lost = a, time.Time{}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Provider) claim(ctx context.Context, name, seen string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, PollTime+pollSlack)
	defer cancel()
	var a Answer
	err := p.ask(ctx, http.MethodPost, "/"+name+"?"+url.Values{SeenParameter: {seen}}.Encode(), &a)
	return a, err
}

// report tells of a place in the queue when it is another one, and once what answers without waiting.
func (p *Provider) report(last, now Answer) {
	command, difference := p.opts.Instead()
	if difference != "" {
		difference = " (" + difference + ")"
	}
	offer := "; " + command + " answers without waiting" + difference
	if last.Place > 0 || last.Held {
		offer = ""
	}
	switch {
	case now.Mark == last.Mark:
	case now.Held:
		p.opts.Progress("another check of yours has a cluster of the room; this one begins when that ends" + offer)
	case now.Place > 0:
		p.opts.Progress(fmt.Sprintf("all clusters of the room are lent; your place in the queue is %d%s", now.Place, offer))
	default:
		p.opts.Progress("the room makes a cluster ready for you")
	}
}

// take keeps the key of a cluster, and begins to say that its borrower is there.
func (p *Provider) take(name string, loan *Loan) (*clusters.Cluster, error) {
	// A kubeconfig can name programs to run.
	if err := clusters.CheckKubeconfig(loan.Kubeconfig); err != nil {
		return nil, &clusters.Problem{What: "the room lent a cluster with a kubeconfig that is not used here", Fix: "tell your instructor", Err: err}
	}
	path := clusters.Kubeconfig(p.state, name)
	err := clusters.MakeDir(p.state, name)
	if err == nil {
		err = os.WriteFile(path, loan.Kubeconfig, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("keep the kubeconfig of cluster %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	beats.Go(func() { p.keepAlive(ctx, name) })
	p.mu.Lock()
	p.beats[name] = func() { cancel(); beats.Wait() }
	p.mu.Unlock()
	c := loan.Cluster
	plain.Within(&c)
	c.Name, c.Kubeconfig, c.Logs = name, path, false
	return &c, nil
}

// keepAlive says again and again that the borrower is there, until the cluster is given back, or taken.
func (p *Provider) keepAlive(ctx context.Context, name string) {
	tick := time.NewTicker(p.opts.Beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, answerTime)
		err := p.ask(asking, http.MethodPost, "/"+name+BeatPath, nil)
		cancel()
		if _, ended := errors.AsType[*EndedError](err); ended {
			return // whoever works with the cluster notices, and asks for its nodes
		}
	}
}

// Delete gives the cluster back, or the place in the queue.
func (p *Provider) Delete(ctx context.Context, name string) error {
	p.mu.Lock()
	stop := p.beats[name]
	delete(p.beats, name)
	p.mu.Unlock()
	if stop != nil {
		// net/http may hand the connection of a beat whose answer has just arrived to the next request, and close it when
		// the beat is cancelled.
		stop()
	}
	if err := os.Remove(clusters.Kubeconfig(p.state, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete kubeconfig of cluster %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := p.ask(ctx, http.MethodDelete, "/"+name, nil); err != nil {
		return &clusters.Problem{
			What: "cluster " + name + " could not be given back; the room takes it back by itself",
			Fix:  "rm -r " + clusters.Dir(p.state, name) + " forgets it here", Err: err,
		}
	}
	return nil
}

// List names what this learner has claimed and not given back.
func (p *Provider) List(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var answer struct{ Claims []string }
	if err := p.ask(ctx, http.MethodGet, "", &answer); err != nil {
		return nil, p.explain("", err)
	}
	return answer.Claims, nil
}

// Nodes tells how the machines of a cluster are, as the room sees them. The error is a *clusters.Problem when the room
// took the cluster back, and errors.ErrUnsupported while the room cannot be asked: then nothing is known.
func (p *Provider) Nodes(ctx context.Context, name string) (nodes []clusters.Node, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err = p.ask(ctx, http.MethodGet, "/"+name+NodesPath, &nodes)
	switch {
	case err == nil:
		return nodes, nil
	case away(err) && !errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("look at the nodes of cluster %s: %w", name, errors.ErrUnsupported)
	case errors.Is(err, errors.ErrUnsupported):
		return nil, err
	}
	return nil, p.explain(name, err)
}

// RestartControllers has the room do it, where it can.
func (p *Provider) RestartControllers(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, RestartTime)
	defer cancel()
	err := p.ask(ctx, http.MethodPost, "/"+name+ControllersPath, nil)
	if err == nil || errors.Is(err, errors.ErrUnsupported) {
		return nil // without it some checks take longer
	}
	return p.explain(name, err)
}

// LoadImageArchive is not possible: the room's clusters have the images that checks need.
func (p *Provider) LoadImageArchive(_ context.Context, name, _ string) error {
	return fmt.Errorf("load image archive into cluster %s of the room: %w", name, errors.ErrUnsupported)
}

// CollectLogs is not possible: the nodes' logs stay on the room's machine.
func (p *Provider) CollectLogs(_ context.Context, name, _ string) error {
	return fmt.Errorf("collect logs of cluster %s of the room: %w", name, errors.ErrUnsupported)
}

// explain makes a *clusters.Problem of what the room said, or did not say, with what helps the learner.
func (p *Provider) explain(name string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	command, _ := p.opts.Instead()
	again := "run it again, or " + command
	ended, isEnded := errors.AsType[*EndedError](err)
	switch {
	case isEnded && name != "" && p.has(name):
		return &clusters.Problem{What: "the room took the cluster back: " + ended.Why, Fix: again}
	case isEnded:
		return &clusters.Problem{What: "the room lends no cluster: " + ended.Why, Fix: again}
	case errors.Is(err, errNoLending):
		return &clusters.Problem{What: err.Error(), Fix: command + ", or ask your instructor"}
	case errors.Is(err, errToken):
		return &clusters.Problem{What: err.Error(), Fix: "ask your instructor for a new handout; meanwhile " + command}
	case errors.Is(err, roomclient.ErrOtherKey):
		return &clusters.Problem{What: err.Error(), Fix: command + " needs no room"}
	case p.has(name) && errors.Is(err, syscall.ECONNREFUSED):
		return &clusters.Problem{What: "the room's server has ended, and took the cluster back", Fix: again}
	case away(err):
		return &clusters.Problem{What: "the room's server does not answer", Fix: "join the room's network, or " + command, Err: err}
	}
	return &clusters.Problem{What: "the room could not help", Fix: again, Err: err}
}

// has says whether the cluster was lent to this process.
func (p *Provider) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beats[name] != nil
}
