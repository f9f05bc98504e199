package hosted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// logLimit is how much of a judge's output is read, in bytes. It has less than a megabyte.
	logLimit = 8 << 20
	// lookPeriod is the time from one look at a silent cluster to the next.
	lookPeriod = 5 * time.Second
	// lostLimit is how long a node, or the API server, may be silent before there is no verdict.
	lostLimit = 2 * time.Minute
)

// follow waits for the judge's answer. A Pod that is lost is replaced by the Job.
func (j *Judges) follow(ctx context.Context, name string) (*Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(lookPeriod)
	defer tick.Stop()
	of := metav1.ListOptions{LabelSelector: verdictLabel + "=" + name}
	var changes <-chan watch.Event
	for told, reached := "", time.Now(); ; {
		if changes == nil {
			if w, err := j.Client.CoreV1().Pods(j.Namespace).Watch(ctx, of); err == nil { // else the tick will do
				changes = w.ResultChan()
			}
		}
		answer, waitsFor, err := j.look(ctx, of)
		switch {
		case answer != nil:
			return answer, nil
		case errors.Is(err, errHopeless), apierrors.IsForbidden(err), err != nil && time.Since(reached) > lostLimit:
			return nil, err
		case err == nil:
			reached = time.Now()
		}
		if waitsFor != told && err == nil {
			j.Progress("the judge: " + waitsFor)
			told = waitsFor
		}
		select {
		case _, open := <-changes:
			if !open {
				changes = nil
			}
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// look asks once how far the Job is: the answer, or what it waits for.
func (j *Judges) look(ctx context.Context, of metav1.ListOptions) (answer *Answer, waitsFor string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	jobs, err := j.Client.BatchV1().Jobs(j.Namespace).List(ctx, of)
	if err != nil {
		return nil, "", err
	}
	if len(jobs.Items) == 0 {
		return nil, "", fmt.Errorf("%w: somebody has removed the Job", errHopeless)
	}
	pods, err := j.Client.CoreV1().Pods(j.Namespace).List(ctx, of)
	if err != nil {
		return nil, "", err
	}
	pod, waitsFor, err := next(&jobs.Items[0], pods.Items, time.Now())
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errHopeless, err)
	}
	if pod != nil {
		answer, err = j.read(ctx, pod)
	}
	return answer, waitsFor, err
}

// errHopeless says that waiting does not help.
var errHopeless = errors.New("the Job gives none")

// next is the Pod of the Job that has an answer. Where there is none, it says what the Job waits for; an error where waiting does not help.
func next(job *batchv1.Job, pods []corev1.Pod, now time.Time) (pod *corev1.Pod, waitsFor string, err error) {
	if ptr.Deref(job.Spec.Suspend, false) {
		return nil, "it waits in the queue", nil
	}
	why := ""
	waitsFor = fmt.Sprintf("it was not begun yet: see the events of Job %s/%s", job.Namespace, job.Name)
	for i := range pods {
		p := &pods[i]
		switch {
		case !metav1.IsControlledBy(p, job): // anybody's Pod may have the label
		case p.Status.Phase == corev1.PodSucceeded:
			return p, "", nil
		case p.DeletionTimestamp != nil:
			if now.Sub(p.DeletionTimestamp.Time) > lostLimit {
				return nil, "", fmt.Errorf("node %s of the judge does not answer", p.Spec.NodeName)
			}
		case p.Status.Phase == corev1.PodRunning:
			waitsFor = "it is judging"
		case p.Status.Phase == corev1.PodFailed:
			why = ended(p)
		default:
			if waitsFor, err = hinders(p); err != nil {
				return nil, "", err
			}
		}
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return nil, "", fmt.Errorf("%s %s %s", c.Reason, c.Message, plain.Line(why))
		}
	}
	return nil, waitsFor, nil
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
	return fmt.Sprintf("it is starting (events of Pod %s/%s say why where it does not)", p.Namespace, p.Name), nil
}

// ended is why a Pod has failed: the end of its output, where it had any.
func ended(p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			return t.Reason + " " + t.Message
		}
	}
	return p.Status.Message
}

// read reads the answer of a Pod that has ended.
func (j *Judges) read(ctx context.Context, pod *corev1.Pod) (*Answer, error) {
	log, err := j.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	output, err := io.ReadAll(io.LimitReader(log, logLimit))
	if err != nil {
		return nil, err
	}
	return lastAnswer(output)
}

// lastAnswer is the last line of a judge's output; before it are lines for people.
func lastAnswer(output []byte) (*Answer, error) {
	output = bytes.TrimSpace(output)
	answer := &Answer{}
	if err := json.Unmarshal(output[bytes.LastIndexByte(output, '\n')+1:], answer); err != nil {
		return nil, fmt.Errorf("read the judge's answer: %w", err)
	}
	return answer, nil
}
