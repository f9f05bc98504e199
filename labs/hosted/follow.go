package hosted

import (
	"bufio"
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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// logLimit is how much of a judge's output is read, in bytes. It has less than a megabyte, and the artifacts, of 3 at most.
	logLimit = 8 << 20
	// retryPeriod is the time from one try to read a log to the next.
	retryPeriod = time.Second
	// lostLimit is how long a log may be out of reach, its node for example, before there is no verdict.
	lostLimit = 2 * time.Minute
)

// follow passes on what the judge says, until it gives its verdict. A Pod that is lost is replaced by the Job; where only the
// connection is, the log is asked for again.
func (j *Judges) follow(ctx context.Context, name string) (*Result, error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := j.watch(watching, name)
	if err != nil {
		return nil, problem(ctx, "no verdict", err)
	}
	read, lines := map[types.UID]bool{}, map[types.UID]int{}
	told, reached := "", time.Now()
	for {
		job, pods, err := w.state(name)
		if err != nil {
			return nil, problem(ctx, "no verdict", err)
		}
		pod, waitsFor, err := next(job, pods, read)
		again := (<-chan time.Time)(nil)
		switch {
		case err != nil:
			return nil, problem(ctx, "no verdict", err)
		case pod != nil:
			reading, stop := w.whileThere(ctx, pod)
			result, why, n, err := j.readLog(reading, pod, lines[pod.UID])
			stop()
			switch {
			case result != nil:
				return result, nil
			case why != nil:
				return nil, &clusters.Problem{What: plain.Text(why.What), Fix: plain.Text(why.Fix)}
			case err == nil:
				reached = time.Now()
				read[pod.UID] = isOver(pod) // else its end is still to be told
			case time.Since(reached) > lostLimit:
				return nil, problem(ctx, "no verdict: the judge's log is out of reach", err)
			}
			lines[pod.UID] = n
			if read[pod.UID] {
				continue
			}
			again = time.After(retryPeriod)
		default:
			reached = time.Now()
			if waitsFor != told {
				j.Progress("the judge: " + waitsFor)
				told = waitsFor
			}
		}
		select {
		case <-w.changed:
		case <-again:
		case err := <-w.failed:
			return nil, problem(ctx, "no verdict", err)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// watched are the Job of a verdict and its Pods.
type watched struct {
	informers informers.SharedInformerFactory
	namespace string
	changed   chan struct{}
	failed    chan error
}

func (j *Judges) watch(ctx context.Context, name string) (*watched, error) {
	w := &watched{namespace: j.Namespace, changed: make(chan struct{}, 1), failed: make(chan error, 2)}
	w.informers = informers.NewSharedInformerFactoryWithOptions(j.Client, 0, informers.WithNamespace(j.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = verdictLabel + "=" + name }))
	tell := func(any) {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{w.informers.Batch().V1().Jobs().Informer(), w.informers.Core().V1().Pods().Informer()} {
		_, err1 := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, after any) { tell(after) }, DeleteFunc: tell})
		err2 := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) { // whatever else it is passes
				select {
				case w.failed <- err:
				default:
				}
			}
		})
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
	}
	w.informers.Start(ctx.Done())
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		w.informers.WaitForCacheSync(ctx.Done())
	}()
	select {
	case <-synced:
		return w, ctx.Err()
	case err := <-w.failed:
		return nil, err
	}
}

func (w *watched) state(name string) (*batchv1.Job, []*corev1.Pod, error) {
	job, err := w.informers.Batch().V1().Jobs().Lister().Jobs(w.namespace).Get(name)
	if err != nil {
		return nil, nil, err
	}
	pods, err := w.informers.Core().V1().Pods().Lister().Pods(w.namespace).List(labels.Everything())
	return job, pods, err
}

// whileThere is a context that ends when a Pod is to go, also one whose node is lost: a connection to it may be silent for ever.
// stop is to be called.
func (w *watched) whileThere(ctx context.Context, pod *corev1.Pod) (reading context.Context, stop func()) {
	reading, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-w.changed:
				now, err := w.informers.Core().V1().Pods().Lister().Pods(w.namespace).Get(pod.Name)
				if err != nil || now.DeletionTimestamp != nil {
					cancel()
				}
			case <-reading.Done():
				return
			}
		}
	}()
	return reading, func() { cancel(); <-ended }
}

// next is a Pod of the Job that has something to say; of those in read all was read. Where there is none, it says what the Job
// waits for; an error where waiting does not help.
func next(job *batchv1.Job, pods []*corev1.Pod, read map[types.UID]bool) (pod *corev1.Pod, waitsFor string, err error) {
	if ptr.Deref(job.Spec.Suspend, false) {
		return nil, "it waits in the queue", nil
	}
	waitsFor = fmt.Sprintf("it was not begun yet: see the events of Job %s/%s", job.Namespace, job.Name)
	for _, p := range pods {
		switch {
		case read[p.UID], !metav1.IsControlledBy(p, job): // anybody's Pod may have the label
		case hasBegun(p):
			return p, "", nil
		default:
			if waitsFor, err = hinders(p); err != nil {
				return nil, "", err
			}
		}
	}
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete) && c.Status == corev1.ConditionTrue {
			return nil, "", fmt.Errorf("the Job ended without one: %s %s", c.Reason, c.Message)
		}
	}
	return nil, waitsFor, nil
}

// hasBegun says whether the Pod's container has run.
func hasBegun(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil || s.State.Terminated != nil {
			return true
		}
	}
	return false
}

// isOver says whether the Pod says nothing more.
func isOver(p *corev1.Pod) bool {
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
	return fmt.Sprintf("it is starting (events of Pod %s/%s say why where it does not)", p.Namespace, p.Name), nil
}

// readLog passes on the lines of a Pod behind those that were read before, and says how many there are. An error means that
// the log may go on.
func (j *Judges) readLog(ctx context.Context, pod *corev1.Pod, before int) (result *Result, why *Problem, lines int, err error) {
	log, err := j.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return nil, nil, before, err
	}
	defer log.Close()
	return j.readEvents(log, before)
}

func (j *Judges) readEvents(output io.Reader, before int) (result *Result, why *Problem, lines int, err error) {
	for r := bufio.NewReader(io.LimitReader(output, logLimit)); ; lines++ {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if len(text) == 0 || text[len(text)-1] != '\n' { // what is cut off comes again
			return result, why, max(lines, before), err
		}
		var event Event
		switch err := json.Unmarshal(text, &event); {
		case lines < before:
		case err != nil:
			j.Progress(string(text))
		case event.Progress != "":
			j.Progress(event.Progress)
		case event.Outcome != nil && j.OnOutcome != nil:
			plain.Within(event.Outcome)
			j.OnOutcome(*event.Outcome)
		}
		if event.Result != nil {
			result = event.Result
		}
		if event.Problem != nil {
			why = event.Problem
		}
	}
}
