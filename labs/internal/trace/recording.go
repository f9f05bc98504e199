package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// File is the name of a recording in a run's artifacts.
const File = "trace.jsonl"

// Recording is what was seen during a run of the suite.
type Recording struct {
	// Suite is the name that the API server keeps for what the checks do.
	Suite string
	// Observations are what the watches delivered.
	Observations []Observation
	// Requests are the manager's that asked for a change: in their order, those of each process of it together.
	Requests []Request
	// Tallies are how often the manager sent each kind of request.
	Tallies []apiproxy.Tally
	// Ended is when the check of a namespace had seen what it wanted to see. What follows is its tidying up.
	Ended map[string]time.Time
	// Notes are what happened to the manager itself.
	Notes []Note
	// Omitted counts, by object, what came too often to be written down.
	Omitted []Omission
}

// Request is a request of the manager. Of a long row of the same, the last that is kept stands for the
// rest: Times is how many it stands for, and Until the time of the last.
type Request struct {
	apiproxy.Request
	Times int       `json:"times,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// Note is what no object shows, such as that the manager was stopped.
type Note struct {
	At time.Time `json:"-"`
	// Namespace is the one that the check worked in whose manager it was.
	Namespace string `json:"namespace"`
	Actor     string `json:"actor"`
	Text      string `json:"text"`
}

// Omission is how many changes of an object were left out.
type Omission struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Changes   int    `json:"changes"`
}

// entry is one line of a recording. Beside At, it has one field.
type entry struct {
	At      time.Time       `json:"at"`
	Suite   string          `json:"suite,omitempty"`
	Object  json.RawMessage `json:"object,omitempty"`
	Deleted bool            `json:"deleted,omitempty"` // of Object
	Request *Request        `json:"request,omitempty"`
	Tally   *apiproxy.Tally `json:"tally,omitempty"`
	Note    *Note           `json:"note,omitempty"`
	Ended   string          `json:"ended,omitempty"` // the namespace of a check
	Omitted *Omission       `json:"omitted,omitempty"`
}

// lineLimit is how long a line of a recording may be: much longer than those that are written.
const lineLimit = 1 << 20

// ReadFile reads the recording at path. The error wraps [os.ErrNotExist] when there is none.
func ReadFile(path string) (*Recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer file.Close()
	return Read(file)
}

// Read reads a recording. A line that a killed suite cut short is left out.
func Read(r io.Reader) (*Recording, error) {
	recording := &Recording{Ended: map[string]time.Time{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineLimit+1)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			recording.add(e)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	return recording, nil
}

func (r *Recording) add(e entry) {
	switch {
	case e.Suite != "":
		r.Suite = e.Suite
	case e.Object != nil:
		if object := decode(e.Object); object != nil {
			r.Observations = append(r.Observations, Observation{At: e.At, Object: object, Deleted: e.Deleted})
		}
	case e.Request != nil:
		e.Request.Times = max(1, e.Request.Times)
		r.Requests = append(r.Requests, *e.Request)
	case e.Tally != nil:
		r.Tallies = append(r.Tallies, *e.Tally)
	case e.Ended != "":
		r.Ended[e.Ended] = e.At
	case e.Note != nil:
		e.Note.At = e.At
		r.Notes = append(r.Notes, *e.Note)
	case e.Omitted != nil:
		r.Omitted = append(r.Omitted, *e.Omitted)
	}
}

// decode reads an object of a recording, nil when it is of no kind that a trace is about.
func decode(data []byte) client.Object {
	var meta metav1.TypeMeta
	if json.Unmarshal(data, &meta) != nil {
		return nil
	}
	var object client.Object
	switch meta.Kind {
	case "Memcached":
		object = &unstructured.Unstructured{}
	case "Deployment":
		object = &appsv1.Deployment{}
	case "ReplicaSet":
		object = &appsv1.ReplicaSet{}
	case "Pod":
		object = &corev1.Pod{}
	case "Event":
		object = &eventsv1.Event{}
	default:
		return nil
	}
	if json.Unmarshal(data, object) != nil {
		return nil
	}
	return object
}

// shorten keeps of an object what [Memory] reads, so that a recording stays small and holds nobody's
// environment variables.
func shorten(o client.Object) any {
	switch o := o.(type) {
	case *appsv1.Deployment:
		short := &appsv1.Deployment{TypeMeta: typed(o), ObjectMeta: metaOf(o)}
		short.Spec.Replicas = o.Spec.Replicas
		for _, c := range o.Spec.Template.Spec.Containers {
			short.Spec.Template.Spec.Containers = append(short.Spec.Template.Spec.Containers, corev1.Container{
				Name: c.Name, Image: c.Image, Command: c.Command, Args: c.Args, Ports: c.Ports,
			})
		}
		short.Status.AvailableReplicas = o.Status.AvailableReplicas
		return short
	case *appsv1.ReplicaSet:
		short := &appsv1.ReplicaSet{TypeMeta: typed(o), ObjectMeta: metaOf(o)}
		short.Spec.Replicas = o.Spec.Replicas
		return short
	case *corev1.Pod:
		short := &corev1.Pod{TypeMeta: typed(o), ObjectMeta: metaOf(o)}
		short.Spec.NodeName = o.Spec.NodeName
		short.Status.Conditions, short.Status.ContainerStatuses = o.Status.Conditions, o.Status.ContainerStatuses
		return short
	case *eventsv1.Event:
		short := o.DeepCopy()
		short.TypeMeta, short.ObjectMeta = typed(o), metaOf(o)
		return short
	case *unstructured.Unstructured:
		return shortMemcached(o)
	default:
		return o
	}
}

// specLimit is how long the spec of a Memcached may be in a recording. That of the course has a tenth of it.
const specLimit = 512

// memcached is what is recorded of one. Its types are the learner's, and may hold anything.
type memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              json.RawMessage `json:"spec,omitempty"`
	Status            status          `json:"status,omitzero"`
}

// shortMemcached leaves out what a reader would need forty times its size in memory for: fields of the learner's own, and a
// long spec but for its size.
func shortMemcached(o *unstructured.Unstructured) any {
	short := memcached{TypeMeta: metav1.TypeMeta{Kind: KindOf(o), APIVersion: o.GetAPIVersion()}, ObjectMeta: metaOf(o), Status: statusOf(o)}
	spec, err := json.Marshal(o.Object["spec"])
	if err != nil || len(spec) > specLimit {
		spec = fmt.Appendf(nil, `{"size":%d}`, sizeOf(o))
	}
	short.Spec = spec
	return short
}

func typed(o client.Object) metav1.TypeMeta { return metav1.TypeMeta{Kind: KindOf(o)} }

func metaOf(o client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		Generation: o.GetGeneration(), DeletionTimestamp: o.GetDeletionTimestamp(), Finalizers: o.GetFinalizers(),
		Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
		OwnerReferences: o.GetOwnerReferences(), ManagedFields: o.GetManagedFields(),
	}
}
