package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fatih/color"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	// stepLimit bounds one step. Pods start within two seconds; the garbage collector may take thirty to notice a new kind. The
	// rest is for a busy machine.
	stepLimit = 90 * time.Second
	// remindAfter is how long nothing may happen before Waiting is said.
	remindAfter = 2 * time.Second
)

// step is one thing that a person does, what comes of it, and what lab 0 asks about that.
type step struct {
	Title   string
	Command string // of a shell
	// Refused says that the command has to fail. Its output is shown.
	Refused bool
	// Until says when the step is over. Then the lab goes on watching for Linger seconds.
	Until  until
	Linger int
	// Waiting is said once when nothing happens for a while.
	Waiting   string
	Why       string
	Questions []question
}

// until is what has to be seen before a step is over.
type until struct {
	// Seen are regular expressions of actions in the step.
	Seen []string
	// Pods is how many there are, all of them available. 0 is the end of all objects.
	Pods *int
}

func readSteps(data []byte) (steps []step, err error) {
	if err := yaml.UnmarshalStrict(data, &steps); err != nil {
		return nil, fmt.Errorf("read the steps: %w", err)
	}
	return steps, nil
}

// missing says what has not happened yet, "" when the step is over.
func (u until) missing(told []trace.Action, t *trace.Tracker) string {
	for _, pattern := range u.Seen {
		expression := regexp.MustCompile(pattern)
		if !slices.ContainsFunc(told, func(a trace.Action) bool { return expression.MatchString(a.Actor + " " + a.String()) }) {
			return fmt.Sprintf("nobody did %q", pattern)
		}
	}
	left, pods, available := 0, 0, int64(0)
	for _, o := range t.Objects {
		switch o.GetKind() {
		case "Event":
			continue
		case "Pod":
			pods++
		case "Deployment":
			available, _, _ = unstructured.NestedInt64(o.Object, "status", "availableReplicas")
		}
		left++
	}
	if u.Pods != nil && (pods != *u.Pods || available != int64(pods) || pods == 0 && left > 0) {
		return fmt.Sprintf("there are %d Pods, %d available, not %d, and %d objects in all", pods, available, *u.Pods, left)
	}
	return ""
}

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
	ended   <-chan struct{} // of the operator, nil without one
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
	var over <-chan time.Time
	reminder := time.NewTimer(remindAfter)
	for {
		var seen []trace.Action
		select {
		case batch := <-v.batches:
			for _, o := range batch {
				seen = append(seen, v.Observe(o)...)
			}
			reminder.Reset(remindAfter)
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
		case <-reminder.C:
			v.paragraph("   ", s.Waiting)
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
		seen = trace.Merge(slices.DeleteFunc(seen, func(a trace.Action) bool { return a.Verb == "" }))
		trace.Print(v.Out, begun, seen)
		if told = append(told, seen...); done == nil && over == nil && s.Until.missing(told, v.Tracker) == "" {
			over = time.After(time.Duration(s.Linger) * time.Second)
		}
	}
}

var (
	bold = color.New(color.Bold).Sprintf
	cyan = color.New(color.FgCyan).Sprintf
)

func (s Stage) announce(n int, what step) {
	fmt.Fprintf(s.Out, "\n%s\n\n", bold("%d  %s", n, what.Title))
	if what.Command != "" {
		fmt.Fprintf(s.Out, "   %s\n", cyan("$ %s", strings.ReplaceAll(what.Command, "\n", "\n     ")))
	}
}

// lineWidth is how long lines of prose may become.
const lineWidth = 80

// paragraph breaks a text into lines.
func (s Stage) paragraph(indent, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(indent)+len(line)+len(word) >= lineWidth {
			fmt.Fprintln(s.Out, indent+line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		fmt.Fprintln(s.Out, indent+line)
	}
}
