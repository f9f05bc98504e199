package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	// stepLimit bounds one step. Pods start within two seconds; the garbage collector may take thirty to notice a new kind. The
	// rest is for a busy machine.
	stepLimit = 90 * time.Second
	// quiet is how long nothing may happen before a reader wonders.
	quiet = 2 * time.Second
	// late is how long a request to the registry waits for what watches show of the time before it.
	late = 300 * time.Millisecond
)

// Stage is where steps are performed.
type Stage struct {
	// Cluster is fresh and has the image Operand in its nodes.
	Cluster *clusters.Cluster
	Operand string
	// Dir is a folder for what the programs write. Path is where the shell finds kubectl.
	Dir, Path string
	// Out is told what is done, by whom, and why.
	Out io.Writer
}

// view is a stage and what is seen there.
type view struct {
	Stage
	*trace.Tracker
	batches <-chan []trace.Observation
	heard   chan trace.Action // by the registry, nil without one
	ended   <-chan struct{}   // of the operator, nil without one
}

// open begins to watch Kubernetes' own kinds and more, until ctx ends.
func (s Stage) open(ctx context.Context, more ...schema.GroupVersionKind) (*view, error) {
	config, err := s.Cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	tracker := trace.NewTracker(func(fieldManager string) string { return fieldManager })
	return &view{Stage: s, Tracker: tracker, batches: trace.Stream(ctx, c, "default", more...)}, nil
}

// shell runs a command as a person would type it. kubectl keeps what it discovers in its home, which is not the user's.
func (s Stage) shell(ctx context.Context, command string) (output string, err error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = []string{"PATH=" + s.Path, "HOME=" + s.Dir, "KUBECONFIG=" + s.Cluster.Kubeconfig, "MEMCACHED_IMAGE=" + s.Operand}
	process.Own(cmd, syscall.SIGKILL)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// hear takes what the registry has answered. One that is told again and again is told once.
func (v *view) hear() func(registry.Request) {
	v.heard = make(chan trace.Action, 1000) // more than an operator sends in a demo
	last := ""
	return func(q registry.Request) {
		a := trace.Action{At: q.Ended, Actor: operatorName, Verb: "sent " + q.Method + " to the registry", Detail: fmt.Sprintf(" (answer %d)", q.Status)}
		if q.Method == http.MethodPut {
			a.Detail = fmt.Sprintf(": %s, size %d%s", q.Entry.Name, q.Entry.Size, a.Detail)
		}
		if a.String() != last {
			last = a.String()
			v.heard <- a
		}
	}
}

// perform does step n and tells what follows, until the step is over. It returns what it told.
func (v *view) perform(ctx context.Context, n int, s step) (told []trace.Action, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	v.announce(n, s)
	begun, done, output := time.Now(), make(chan error, 1), ""
	go func() {
		var err error
		output, err = v.shell(ctx, s.Command)
		done <- err
	}()
	var over, flush <-chan time.Time
	var heard []trace.Action
	restless := time.NewTimer(quiet)
	for {
		var seen []trace.Action
		select {
		case batch := <-v.batches:
			for _, o := range batch {
				seen = append(seen, v.Observe(o)...)
			}
			restless.Reset(quiet)
		case a := <-v.heard:
			heard, flush = append(heard, a), time.After(late)
			continue
		case <-flush:
		case err := <-done:
			done = nil
			switch {
			case ctx.Err() != nil:
				continue
			case s.Refused && err == nil:
				return told, fmt.Errorf("%s: the API server accepted it", s.Command)
			case s.Refused:
				fmt.Fprintf(v.Out, "   %s\n", bold("%s", plain.Text(output)))
			case err != nil:
				return told, fmt.Errorf("%s: %w\n%s", s.Command, err, plain.Text(output))
			}
		case <-restless.C:
			v.paragraph("   ", faint, s.Waiting)
			s.Waiting = "" // once is enough
			continue
		case <-over:
			return told, nil
		case <-v.ended:
			return told, fmt.Errorf("the operator ended by itself; its log is in %s", v.Dir)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return told, fmt.Errorf("after %s %s; the logs are in %s", stepLimit, s.Until.missing(told, v.Tracker), v.Dir)
			}
			return told, ctx.Err()
		}
		seen, heard = append(seen, heard...), nil
		seen = slices.DeleteFunc(seen, func(a trace.Action) bool { return a.Verb == "" })
		slices.SortStableFunc(seen, func(a, b trace.Action) int { return a.At.Compare(b.At) })
		seen = trace.Merge(seen)
		trace.Print(v.Out, begun, seen)
		if told = append(told, seen...); done == nil && over == nil && s.Until.missing(told, v.Tracker) == "" {
			over = time.After(time.Duration(s.Linger) * time.Second)
		}
	}
}
