package demo

import (
	"context"
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

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/trace"
)

// stepLimit bounds one step. Pods start within two seconds; the garbage collector may take thirty to notice a new kind. The rest is
// for a busy machine.
const stepLimit = 90 * time.Second

// step is one thing that a person does, what comes of it, and what lab 0 asks about that.
type step struct {
	Title   string
	Command string // of a shell
	// Refused says that the command has to fail. Its output is shown.
	Refused bool
	// Until says when the step is over. Then the lab goes on watching for Linger seconds.
	Until  until
	Linger int
	// Waiting says why it may take a while.
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

// met says whether all of it was seen. told are the actions of the step.
func (u until) met(told []trace.Action, t *trace.Tracker) bool {
	for _, pattern := range u.Seen {
		expression := regexp.MustCompile(pattern)
		if !slices.ContainsFunc(told, func(a trace.Action) bool { return expression.MatchString(a.Actor + " " + a.String()) }) {
			return false
		}
	}
	objects, available := map[string]int{}, int64(0) // by kind
	for _, o := range t.Objects {
		if objects[o.GetKind()]++; o.GetKind() == "Deployment" {
			available, _, _ = unstructured.NestedInt64(o.Object, "status", "availableReplicas")
		}
	}
	delete(objects, "Event")
	return u.Pods == nil || objects["Pod"] == *u.Pods && available == int64(*u.Pods) && (*u.Pods > 0 || len(objects) == 0)
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

	tracker *trace.Tracker
	batches <-chan []trace.Observation
}

// open begins to watch Kubernetes' own kinds and more, until ctx ends.
func (s *Stage) open(ctx context.Context, more ...schema.GroupVersionKind) error {
	config, err := s.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	s.tracker, s.batches = trace.NewTracker(func(fieldManager string) string { return fieldManager }), trace.Stream(ctx, c, "default", more...)
	return nil
}

// shell runs a command as a person would type it. kubectl keeps what it discovers in its home, which is not the user's.
func (s Stage) shell(ctx context.Context, command string) (output string, err error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = []string{"PATH=" + s.Path, "HOME=" + s.Dir, "KUBECONFIG=" + s.Cluster.Kubeconfig, "MEMCACHED_IMAGE=" + s.Operand}
	process.Own(cmd, syscall.SIGKILL)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(plain.Text(string(out))), err
}

// perform does step n and tells what follows, until the step is over. It returns what it told.
func (s Stage) perform(ctx context.Context, n int, do step) (told []trace.Action, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	command := strings.ReplaceAll(do.Command, "\n", "\n     ")
	fmt.Fprintf(s.Out, "\n%s\n\n   %s\n", color.New(color.Bold).Sprintf("%d  %s", n, do.Title), color.CyanString("$ %s", command))
	begun := time.Now()
	output, err := s.shell(ctx, do.Command)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", do.Command, ctx.Err())
	case do.Refused && err == nil:
		return nil, fmt.Errorf("%s: the API server accepted it", do.Command)
	case do.Refused:
		s.paragraph("", output)
	case err != nil:
		return nil, fmt.Errorf("%s: %w\n%s", do.Command, err, output)
	case do.Waiting != "":
		s.paragraph("", do.Waiting)
	}
	var over <-chan time.Time
	for {
		if over == nil && do.Until.met(told, s.tracker) {
			over = time.After(time.Duration(do.Linger) * time.Second)
		}
		select {
		case batch := <-s.batches:
			var seen []trace.Action
			for _, o := range batch {
				seen = append(seen, s.tracker.Observe(o)...)
			}
			trace.Print(s.Out, begun, seen)
			told = append(told, seen...)
		case <-over:
			return told, nil
		case <-ctx.Done():
			return told, fmt.Errorf("%w before all was seen that should come of it; the logs are in %s", ctx.Err(), s.Dir)
		}
	}
}

// paragraph writes a text behind head, folded.
func (s Stage) paragraph(head, text string) { fmt.Fprint(s.Out, plain.Fold("   "+head, text)) }
