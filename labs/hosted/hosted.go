// Package hosted has verdicts made on a Kubernetes that somebody has already: each is a Job there, whose Pod has a control
// plane of its own in it. docs/hosted.md tells how, and what it costs.
package hosted

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/restconfig"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// sentLimit is the size of a packed workspace: that of a Secret. The solution of the last lab has 60 KB.
	sentLimit = 1 << 20
	// workspaceLimit is the size of a workspace before that.
	workspaceLimit = 16 << 20
	// unpackedLimit is the size of what was packed, in JSON, and the two others how many objects and commas there may be in it, and in
	// a line of a judge's: an entry of a list takes a hundred times its two bytes.
	unpackedLimit, objectsLimit, commasLimit = 32 << 20, 20_000, 200_000
	// logLimit is how much of a judge's output is read. It has less than a megabyte, and the artifacts, of 3 at most.
	logLimit = 8 << 20
	// idLimit is how long the id of a check may be, and how many checks a lab may have.
	idLimit, checksLimit = 100, 1000
	// shortLimit is how much is left of a text, in characters, where there is too much.
	shortLimit = 500
	// progressLimit is how much is shown of a line that is none of a judge's.
	progressLimit = 1 << 10
	// lookPeriod is how often it is looked what a Job waits for.
	lookPeriod = 500 * time.Millisecond
	// cleanupLimit bounds the removal of a Job.
	cleanupLimit = 15 * time.Second
)

// Line is one of a judge's output, as JSON. It has one of them.
type Line struct {
	// Progress is what takes long.
	Progress string `json:"progress,omitempty"`
	// Outcome is certain before the verdict.
	Outcome *verdict.Outcome `json:"outcome,omitempty"`
	// Answer is the last line.
	Answer *Answer `json:"answer,omitempty"`
	// Problem is the last line where there is no answer.
	Problem *Problem `json:"problem,omitempty"`
}

// Problem is what kept a judge from its verdict, as [clusters.Problem] has it.
type Problem struct {
	What string `json:"what"`
	Fix  string `json:"fix"`
}

// Answer is what a judge has found out.
type Answer struct {
	// Results are those of the labs, in the order of the question.
	Results []*verdict.Result `json:"results"`
	// Artifacts are packed ([Pack]); nil where there are too many.
	Artifacts []byte `json:"artifacts,omitempty"`
	// Cost is nil where it is not to be seen.
	Cost *Cost `json:"cost,omitempty"`
}

// Files are the artifacts: plain files that nobody else reads. What else may stand in a line of a Pod is left out.
func (a *Answer) Files() (course.Tree, error) {
	if len(a.Artifacts) == 0 {
		return nil, nil
	}
	var files course.Tree
	var text json.RawMessage
	if err := Unpack(bytes.NewReader(a.Artifacts), &text); err != nil {
		return nil, fmt.Errorf("artifacts: %w", err)
	}
	if err := decode(text, &files); err != nil {
		return nil, fmt.Errorf("artifacts: %w", err)
	}
	for name, file := range files {
		if file.Mode&fs.ModeSymlink != 0 {
			delete(files, name)
			continue
		}
		files[name] = course.File{Data: file.Data, Mode: 0o600}
	}
	return files, nil
}

// Cost is what a Pod has taken of its node.
type Cost struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	// MemoryPeak is the most that it had at a time, in bytes, with the files that the kernel kept for it.
	MemoryPeak int64 `json:"memoryPeak"`
}

// Question is what a judge is asked.
type Question struct {
	// Labs are those to judge in one run, as [verdict.Judge.Check] takes them.
	Labs  []int  `json:"labs"`
	Seed  int64  `json:"seed,omitempty"`
	Storm string `json:"storm,omitempty"`
	// Workspace are the files to judge.
	Workspace course.Tree `json:"workspace"`
}

// Pack makes JSON small, if [Unpack] reads it.
func Pack(what any) ([]byte, error) {
	text, err := json.Marshal(what)
	if err == nil && len(text) > unpackedLimit {
		err = fmt.Errorf("%d MiB with all names, and %d are read", len(text)>>20, unpackedLimit>>20)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err == nil {
		_, err = w.Write(text)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return packed.Bytes(), nil
}

// Unpack reads what [Pack] made, up to 32 MiB of it.
func Unpack(r io.Reader, to any) error {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(unpacked, unpackedLimit)).Decode(to); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	return nil
}

// decode reads JSON of somebody else's.
func decode(text []byte, to any) error {
	if objects, commas := parts(text); objects > objectsLimit || commas > commasLimit {
		return errors.New("there is too much in it")
	}
	return json.Unmarshal(text, to)
}

// parts counts the objects and commas of JSON, outside of its strings.
func parts(text []byte) (objects, commas int) {
	inside := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inside = !inside
		case inside && c == '\\':
			i++
		case inside:
		case c == '{':
			objects++
		case c == ',':
			commas++
		}
	}
	return objects, commas
}

// Fit is the answer without what makes it more than a [Judges] reads: first the artifacts, then what explains the checks, of which
// the beginning is left. What code makes an API server or a compiler say has no end, and its verdict is to be heard all the same.
func (a Answer) Fit() Answer {
	if a.heard() {
		return a
	}
	if a.Artifacts = nil; a.heard() {
		return a
	}
	a.Results = slices.Clone(a.Results)
	for i, result := range a.Results {
		short := *result
		short.Checks = slices.Clone(result.Checks)
		for j := range short.Checks {
			c := &short.Checks[j]
			c.Fields, c.Evidence = nil, nil
			c.Expected, c.Seen = plain.Short(c.Expected, shortLimit), plain.Short(c.Seen, shortLimit)
		}
		a.Results[i] = &short
	}
	return a
}

// heard says whether a [Judges] reads the answer, behind as much of something else.
func (a Answer) heard() bool {
	text, err := json.Marshal(Line{Answer: &a})
	var line Line
	return err == nil && len(text) < logLimit/2 && decode(text, &line) == nil
}

// Judges gives verdicts by Jobs.
type Judges struct {
	Client    kubernetes.Interface
	Namespace string
	// Image is that of `make judge-image`, as nodes of the cluster find it. The learner's code then runs in the judge's own Pod. With
	// "", it runs in a Pod of its own, and image and all else are what the namespace was prepared with ([Settings]).
	Image string
	// Progress is told what takes long, in one line each.
	Progress func(line string)
	// OnOutcome, if it is not nil, is told what is certain before the verdict.
	OnOutcome func(verdict.Outcome)
}

// Config is that of the current context of the kubeconfig, KUBECONFIG or ~/.kube/config, with its namespace.
func Config() (config *rest.Config, namespace string, err error) {
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	if config, err = loading.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("set KUBECONFIG to a file with a current context: %w", err)
	}
	restconfig.Guard(config)
	config.QPS = -1 // the API server has limits of its own; a class waits for many Jobs at a time
	namespace, _, err = loading.Namespace()
	return config, namespace, err
}

// Connect gives the judges of that cluster and namespace, and says where they are.
func Connect(image string) (j *Judges, where string, err error) {
	config, namespace, err := Config()
	if err != nil {
		return nil, "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, "", err
	}
	return &Judges{Client: client, Namespace: namespace, Image: image}, fmt.Sprintf("namespace %s of %s", namespace, config.Host), nil
}

// Check judges the workspace, a folder here, and keeps result and artifacts in state, as [verdict.Judge.Check] does.
func (j *Judges) Check(ctx context.Context, state, workspace string, q Question) ([]*verdict.Result, error) {
	answer, err := j.Ask(ctx, workspace, q)
	if err != nil {
		return nil, err
	}
	files, err := answer.Files()
	if err != nil { // the verdict is one all the same
		j.Progress(fmt.Sprintf("the artifacts are left out: %v", err))
	}
	return answer.Results, verdict.Adopt(state, answer.Results, files)
}

// read reads a workspace without what no verdict needs: binaries, and hidden folders, in which secrets may be.
func read(workspace string) (course.Tree, error) {
	return course.ReadTreeUpTo(workspace, workspaceLimit, func(name string, d fs.DirEntry) bool {
		return d.IsDir() && (name == "bin" || strings.HasPrefix(d.Name(), "."))
	})
}

// Ask judges the workspace, a folder here, and keeps nothing. The Job and all that belongs to it is gone when Ask returns, also when ctx has
// ended; should this process be killed, the cluster removes it ten minutes after its end. The error is a [*clusters.Problem]
// where the cluster is at fault.
func (j *Judges) Ask(ctx context.Context, workspace string, q Question) (answer *Answer, err error) {
	q.Workspace, err = read(workspace)
	if err != nil {
		return nil, &Unfit{&clusters.Problem{What: "the workspace cannot be sent", Fix: "see what it says", Err: err}}
	}
	for name := range q.Workspace {
		if !utf8.ValidString(name) {
			return nil, &Unfit{&clusters.Problem{What: fmt.Sprintf("the name of the file %q is no UTF-8", name), Fix: "give it another one"}}
		}
	}
	packed, err := Pack(q)
	if err != nil {
		return nil, &Unfit{&clusters.Problem{What: "the workspace cannot be sent", Fix: "move what is no code out of the workspace", Err: err}}
	}
	if len(packed) > sentLimit {
		return nil, &Unfit{&clusters.Problem{
			What: fmt.Sprintf("the workspace has %d KiB when it is packed, and a Secret holds %d", len(packed)>>10, sentLimit>>10),
			Fix:  "move what is no code out of the workspace",
		}}
	}
	q.Workspace = nil
	settings, err := j.settings(ctx)
	if err != nil {
		return nil, err
	}
	if settings.Pool != "" && q.Storm != "" {
		return nil, &clusters.Problem{
			What: "a long storm needs two managers at one address, and the containers of a sandbox share theirs",
			Fix:  "JUDGE_IMAGE=image for your own code, or a verdict at home",
		}
	}
	job, err := j.start(ctx, fmt.Sprintf("lab-%d", q.Labs[0]), settings, checkCommand)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.remove(ctx, job.Name)) }()
	// The Pod waits for the Secret, and the Secret goes with the Job.
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name, Labels: job.Labels, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
		}},
		Data: map[string][]byte{questionFile: packed},
	}
	if _, err := j.Client.CoreV1().Secrets(j.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return nil, problem(ctx, "cannot send the workspace", err)
	}
	if answer, err = j.follow(ctx, job.Name); err != nil {
		return nil, err
	}
	if !answer.answers(q) {
		return nil, &clusters.Problem{What: "the image " + settings.Image + " is of another version of the course", Fix: "make judge-image"}
	}
	for _, r := range answer.Results {
		r.Plain()
		r.Workspace = workspace // it was another folder in the Pod
	}
	return answer, nil
}

// answers says whether there is a result of each lab that was asked for, which this version understands.
func (a *Answer) answers(q Question) bool {
	return slices.EqualFunc(a.Results, q.Labs, func(r *verdict.Result, lab int) bool {
		return r != nil && r.Schema == 1 && r.Lab == lab && len(r.Checks) < checksLimit &&
			!slices.ContainsFunc(r.Checks, func(c verdict.Check) bool { return len(c.ID) > idLimit })
	})
}

// Unfit says that it is the workspace's fault that nobody judges it.
type Unfit struct{ *clusters.Problem }

// Unwrap gives the problem.
func (u *Unfit) Unwrap() error { return u.Problem }

// Try has a Job try whether sandboxes are closed: an error says why a learner's code is not judged here.
func (j *Judges) Try(ctx context.Context) (err error) {
	settings, err := j.settings(ctx)
	if err != nil {
		return err
	}
	job, err := j.start(ctx, "canary", settings, canaryCommand)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.remove(ctx, job.Name)) }()
	_, err = j.follow(ctx, job.Name)
	return err
}

// start makes a Job.
func (j *Judges) start(ctx context.Context, what string, s Settings, command string) (*batchv1.Job, error) {
	job, err := newJob(what, s, command)
	if err != nil {
		return nil, err
	}
	if job, err = j.Client.BatchV1().Jobs(j.Namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return nil, problem(ctx, "cannot make a Job", err)
	}
	return job, nil
}

// problem makes err a [*clusters.Problem], unless the caller has ended ctx.
func problem(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &clusters.Problem{What: what, Fix: "see docs/hosted.md for what a judge needs", Err: err}
}

// remove removes a Job with its Pod and Secret.
func (j *Judges) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	background := metav1.DeletePropagationBackground
	if err := j.Client.BatchV1().Jobs(j.Namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return &clusters.Problem{
			What: "a Job is left", Fix: fmt.Sprintf("kubectl delete job --namespace %s %s", j.Namespace, name), Err: err,
		}
	}
	return nil
}

// follow passes on what the judge says, until it gives its verdict. A Pod that is lost is replaced by the Job; where only the
// connection is, the rest of its log is asked for.
func (j *Judges) follow(ctx context.Context, job string) (*Answer, error) {
	heard, silent := map[string]int{}, map[string]bool{}
	for {
		pod, err := j.next(ctx, job, silent)
		if err != nil {
			return nil, problem(ctx, "no verdict", err)
		}
		silent[pod.Name] = over(pod)
		logs, err := j.Client.CoreV1().Pods(j.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		if err != nil {
			continue // it is gone, or the connection was not made
		}
		answer, why, lines := j.hear(logs, heard[pod.Name])
		logs.Close()
		switch {
		case answer != nil:
			return answer, nil
		case why != nil:
			return nil, &clusters.Problem{What: plain.Text(why.What), Fix: plain.Text(why.Fix)}
		}
		heard[pod.Name] = lines
	}
}

// hear reads a judge's output, behind the lines that were heard before. One that was lost has neither an answer nor a problem. lines
// is how many there are.
func (j *Judges) hear(output io.Reader, before int) (answer *Answer, why *Problem, lines int) {
	for r := bufio.NewReader(io.LimitReader(output, logLimit)); ; lines++ {
		text, err := r.ReadBytes('\n')
		if err != nil {
			return answer, why, lines // what is cut off comes again
		}
		var line Line
		switch err := decode(text, &line); {
		case lines < before:
		case err != nil:
			j.Progress(string(text[:min(len(text), progressLimit)]))
		case line.Progress != "":
			j.Progress(line.Progress)
		case line.Outcome != nil && j.OnOutcome != nil:
			plain.Within(line.Outcome)
			j.OnOutcome(*line.Outcome)
		case line.Answer != nil:
			answer = line.Answer
		case line.Problem != nil:
			why = line.Problem
		}
	}
}

// next waits for a Pod of the Job that has something to say; silent have said all. Meanwhile it tells what the Job waits for.
func (j *Judges) next(ctx context.Context, name string, silent map[string]bool) (next *corev1.Pod, err error) {
	told := ""
	err = wait.PollUntilContextCancel(ctx, lookPeriod, len(silent) == 0, func(ctx context.Context) (bool, error) {
		job, err := j.Client.BatchV1().Jobs(j.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		tell := func(waitsFor string) {
			if waitsFor != told {
				j.Progress("the judge: " + waitsFor)
				told = waitsFor
			}
		}
		if ptr.Deref(job.Spec.Suspend, false) {
			tell("it waits in the queue")
			return false, nil
		}
		pods, err := j.Client.CoreV1().Pods(j.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + name})
		if err != nil {
			return false, err
		}
		waitsFor := "it was not begun yet: see the events of Job " + path.Join(j.Namespace, name)
		for _, p := range pods.Items {
			switch {
			case silent[p.Name], !metav1.IsControlledBy(&p, job): // anybody's Pod may have the label
			case began(&p):
				next = &p
				return true, nil
			default:
				if waitsFor, err = hinders(&p); err != nil {
					return false, err
				}
			}
		}
		if why := ended(job); why != "" {
			return false, errors.New(why)
		}
		tell(waitsFor)
		return false, nil
	})
	return next, err
}

// began says whether the Pod's container has run.
func began(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil || s.State.Terminated != nil {
			return true
		}
	}
	return false
}

// over says whether the Pod says nothing more.
func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// hinders is what keeps a Pod from beginning; an error where waiting does not help.
func hinders(p *corev1.Pod) (string, error) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message, nil
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil {
			switch w.Reason {
			case "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName":
				return "", fmt.Errorf("%s: %s", w.Reason, w.Message)
			}
		}
	}
	return "it is starting", nil
}

// ended is why a Job makes no further Pod, "" while it may.
func ended(job *batchv1.Job) string {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete) && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("the Job ended without one: %s %s", c.Reason, c.Message)
		}
	}
	return ""
}
