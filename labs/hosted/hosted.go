// Package hosted has verdicts made on a Kubernetes that somebody has already: each is a Job there, whose Pod has a control
// plane of its own in it. docs/hosted.md tells how, and what it costs.
package hosted

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/restconfig"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// sentLimit is the size of a packed workspace: that of a Secret. The solution of the last lab has 60 KB.
	sentLimit = 1 << 20
	// cleanupLimit bounds the removal of a Job.
	cleanupLimit = 15 * time.Second
	// settingsName is that of the ConfigMap that says what verdicts in a namespace are made with.
	settingsName = "operator-lab"
)

// Request is what a judge is asked.
type Request struct {
	// Labs are those to judge in one run, as [verdict.Judge.Check] takes them.
	Labs  []int  `json:"labs"`
	Seed  int64  `json:"seed,omitempty"`
	Storm string `json:"storm,omitempty"`
	// Workspace are the files to judge.
	Workspace course.Tree `json:"workspace"`
}

// Event is a line of a judge's output, as JSON. It has one of these.
type Event struct {
	// Progress is what takes long.
	Progress string `json:"progress,omitempty"`
	// Outcome is certain before the verdict.
	Outcome *verdict.Outcome `json:"outcome,omitempty"`
	// Result is in the last line.
	Result *Result `json:"result,omitempty"`
	// Problem is in the last line where there is no result.
	Problem *Problem `json:"problem,omitempty"`
}

// Result is what a judge has found out.
type Result struct {
	// Results are those of the labs, in the order of the request.
	Results []*verdict.Result `json:"results"`
	// Artifacts are files, packed ([Pack]); nil where there are too many.
	Artifacts []byte `json:"artifacts,omitempty"`
	// Cost is nil where it is not to be seen.
	Cost *Cost `json:"cost,omitempty"`
}

// Cost is what a Pod has taken of its node.
type Cost struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	// MemoryPeak is the most that it had at a time, in bytes, with the files that the kernel kept for it.
	MemoryPeak int64 `json:"memoryPeak"`
}

// Problem is what kept a judge from its verdict, as [clusters.Problem] has it.
type Problem struct {
	What string `json:"what"`
	Fix  string `json:"fix"`
}

// ProblemOf is an error as a judge tells it.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*clusters.Problem](err); ok {
		return &Problem{What: p.Finding(), Fix: p.Fix}
	}
	return &Problem{What: err.Error(), Fix: "make doctor"}
}

// Pack makes JSON small.
func Pack(what any) ([]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(w).Encode(what), w.Close()); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return packed.Bytes(), nil
}

// Unpack reads what [Pack] made.
func Unpack(r io.Reader, to any) error {
	unpacked, err := gzip.NewReader(r)
	if err == nil {
		err = json.NewDecoder(unpacked).Decode(to)
	}
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	return nil
}

// Judges gives verdicts by Jobs.
type Judges struct {
	Client    kubernetes.Interface
	Namespace string
	// Image is that of `make judge-image`, as nodes of the cluster find it.
	Image string
	// Queue is the LocalQueue of Kueue that admits the Jobs, "" for none.
	Queue string
	// RuntimeClass runs the Pods, such as gvisor; "" is the cluster's default.
	RuntimeClass string
	// HostUsers gives the Pods no user namespace: for nodes whose container runtime has none (runc before 1.2).
	HostUsers bool
	// Progress is told what takes long, in one line each.
	Progress func(line string)
	// OnOutcome, if it is not nil, is told what is certain before the verdict.
	OnOutcome func(verdict.Outcome)
}

// Connect gives the judges of the cluster that KUBECONFIG, or ~/.kube/config, has as its current context, and of its namespace.
// Image, queue, runtimeClass and hostUsers are what the ConfigMap operator-lab in there says; an image that is given comes first. where
// says which cluster it is.
func Connect(ctx context.Context, image string) (j *Judges, where string, err error) {
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loading.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("set KUBECONFIG to a file with a current context: %w", err)
	}
	restconfig.Guard(config)
	namespace, _, err := loading.Namespace()
	if err != nil {
		return nil, "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, "", err
	}
	settings, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, settingsName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, "", err
	}
	j = &Judges{
		Client: client, Namespace: namespace, Image: image,
		Queue: settings.Data["queue"], RuntimeClass: settings.Data["runtimeClass"], HostUsers: settings.Data["hostUsers"] == "true",
	}
	if j.Image == "" {
		j.Image = settings.Data["image"]
	}
	if j.Image == "" {
		return nil, "", fmt.Errorf("no image judges in the namespace %s: JUDGE_IMAGE=image, or its ConfigMap %s (docs/hosted.md)", namespace, settingsName)
	}
	return j, fmt.Sprintf("namespace %s of %s", namespace, config.Host), nil
}

// Check judges the workspace, a folder here, and keeps result and artifacts in state, as [verdict.Judge.Check] does.
func (j *Judges) Check(ctx context.Context, state, workspace string, r Request) ([]*verdict.Result, error) {
	result, err := j.Run(ctx, workspace, r)
	if err != nil {
		return nil, err
	}
	var files course.Tree
	if len(result.Artifacts) > 0 {
		if err := Unpack(bytes.NewReader(result.Artifacts), &files); err != nil {
			return nil, err
		}
	}
	return result.Results, verdict.Adopt(state, result.Results, files)
}

// Run judges the workspace, a folder here, and keeps nothing. The Job and all that belongs to it is gone when Run returns, also
// when ctx has ended; should this process be killed, the cluster removes it ten minutes after its end. The error is a
// [*clusters.Problem] where there is something to fix.
func (j *Judges) Run(ctx context.Context, workspace string, r Request) (result *Result, err error) {
	if r.Workspace, err = read(workspace); err != nil {
		return nil, err
	}
	packed, err := Pack(r)
	if err != nil {
		return nil, err
	}
	if len(packed) > sentLimit {
		return nil, &clusters.Problem{
			What: fmt.Sprintf("the workspace has %d KiB when it is packed, and a Secret holds %d", len(packed)>>10, sentLimit>>10),
			Fix:  "move what is no code out of the workspace",
		}
	}
	job, err := j.Client.BatchV1().Jobs(j.Namespace).Create(ctx, j.newJob(fmt.Sprintf("lab-%d", r.Labs[0])), metav1.CreateOptions{})
	if err != nil {
		return nil, problem(ctx, "cannot make a Job", err)
	}
	defer func() { err = errors.Join(err, j.remove(ctx, job.Name)) }()
	// The Pod waits for the Secret, and the Secret goes with the Job.
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name, Labels: job.Labels, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
		}},
		Data: map[string][]byte{requestFile: packed},
	}
	if _, err := j.Client.CoreV1().Secrets(j.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return nil, problem(ctx, "cannot send the workspace", err)
	}
	if result, err = j.follow(ctx, job.Name); err != nil {
		return nil, err
	}
	for _, one := range result.Results {
		one.Plain()
		one.Workspace = workspace // it was another folder in the Pod
	}
	return result, nil
}

// read reads a workspace without what no verdict needs: binaries, and hidden folders, in which secrets may be.
func read(workspace string) (course.Tree, error) {
	return course.ReadTreeExcept(workspace, func(name string, d fs.DirEntry) bool {
		return d.IsDir() && (name == "bin" || strings.HasPrefix(d.Name(), "."))
	})
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
	err := j.Client.BatchV1().Jobs(j.Namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return &clusters.Problem{
			What: "a Job is left", Fix: fmt.Sprintf("kubectl delete job --namespace %s %s", j.Namespace, name), Err: err,
		}
	}
	return nil
}
