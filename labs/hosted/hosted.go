// Package hosted has verdicts made on a Kubernetes that somebody has already: each is a Job there, whose Pod has a control
// plane of its own in it. docs/hosted.md tells how, and what it costs.
package hosted

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
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
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// sentLimit is the size of a packed workspace: that of a Secret. The solution of the last lab has 60 KB.
	sentLimit = 1 << 20
	// requestLimit bounds a request to the cluster.
	requestLimit = 15 * time.Second
	// settingsName is that of the ConfigMap that says what verdicts in a namespace are made with.
	settingsName = "operator-lab"
)

// Request is what a judge is asked.
type Request struct {
	Lab  int
	Seed int64
}

// Answer is what a judge has found out: the last line of its output, as JSON. It has one of these.
type Answer struct {
	// Results are one for each lab that was to be judged, in their order.
	Results []*verdict.Result `json:"results,omitempty"`
	// Refused is why nothing can be judged, which is the learner's to fix.
	Refused string `json:"refused,omitempty"`
	// Problem is what kept the judge from a verdict.
	Problem *clusters.Problem `json:"problem,omitempty"`
}

// ProblemOf is an error as a judge tells it.
func ProblemOf(err error) *clusters.Problem {
	if p, ok := errors.AsType[*clusters.Problem](err); ok {
		return &clusters.Problem{What: p.Finding(), Fix: p.Fix}
	}
	return &clusters.Problem{What: err.Error(), Fix: "make doctor"}
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
}

// Connect gives the judges of the cluster that KUBECONFIG, or ~/.kube/config, has as its current context, and of its namespace.
// Image, queue, runtimeClass and hostUsers are what the ConfigMap operator-lab in there says. where says which cluster it is.
func Connect(ctx context.Context) (j *Judges, where string, err error) {
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loading.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("set KUBECONFIG to a file with a current context: %w", err)
	}
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
		Client: client, Namespace: namespace, Image: settings.Data["image"],
		Queue: settings.Data["queue"], RuntimeClass: settings.Data["runtimeClass"], HostUsers: settings.Data["hostUsers"] == "true",
	}
	if j.Image == "" {
		return nil, "", fmt.Errorf("the namespace %s has no ConfigMap %s that names an image (docs/hosted.md)", namespace, settingsName)
	}
	return j, fmt.Sprintf("namespace %s of %s", namespace, config.Host), nil
}

// Check judges the workspace, a folder here. The Job and all that belongs to it is gone when Check returns, also when ctx has ended;
// should this process be killed, the cluster removes it ten minutes after its end. The error is a [*clusters.Problem] where there is
// something to fix. A result has no artifacts: they are gone with the Pod.
func (j *Judges) Check(ctx context.Context, workspace string, r Request) (result *verdict.Result, err error) {
	packed, err := pack(workspace)
	if err != nil {
		return nil, err
	}
	if len(packed) > sentLimit {
		return nil, &clusters.Problem{
			What: fmt.Sprintf("the workspace has %d KiB when it is packed, and a Secret holds %d", len(packed)>>10, sentLimit>>10),
			Fix:  "move what is no code out of the workspace",
		}
	}
	job, err := j.Client.BatchV1().Jobs(j.Namespace).Create(ctx, j.newJob(r), metav1.CreateOptions{})
	if err != nil {
		return nil, problem(ctx, "cannot make a Job", err)
	}
	defer func() { err = errors.Join(err, j.remove(ctx, job.Name)) }()
	// The Pod waits for the Secret, and the Secret goes with the Job.
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name, Labels: job.Labels, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
		}},
		Data: map[string][]byte{handInFile: packed},
	}
	if _, err := j.Client.CoreV1().Secrets(j.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return nil, problem(ctx, "cannot send the workspace", err)
	}
	answer, err := j.follow(ctx, job.Name)
	switch {
	case err != nil:
		return nil, problem(ctx, "no verdict", err)
	case answer.Problem != nil:
		plain.Within(answer.Problem)
		return nil, answer.Problem
	case len(answer.Results) != 1 || answer.Results[0] == nil || answer.Results[0].Lab != r.Lab:
		return nil, problem(ctx, "no verdict", fmt.Errorf("the judge judged something else: %s", plain.Text(answer.Refused)))
	}
	result = answer.Results[0]
	result.Plain()
	result.Workspace, result.Artifacts = workspace, "" // they were other folders in the Pod, and gone with it
	return result, nil
}

// pack makes a zip of a workspace without what no verdict needs: binaries, and hidden folders, in which secrets may be.
func pack(workspace string) ([]byte, error) {
	tree, err := course.ReadTree(workspace, func(name string, d fs.DirEntry) bool {
		return d.IsDir() && (name == "bin" || strings.HasPrefix(d.Name(), "."))
	})
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, path := range tree.Paths() {
		w, err := archive.Create(path)
		if err == nil {
			_, err = w.Write(tree[path].Data)
		}
		if err != nil {
			return nil, fmt.Errorf("pack the workspace: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("pack the workspace: %w", err)
	}
	return packed.Bytes(), nil
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
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
