package owns

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// quietFor is how long nothing may change for the namespace to count as quiet.
	quietFor = time.Second
	// quietWrites is how many writes a manager may send in that time about all Memcacheds together. One
	// that applies again on each pass sends a few, a loop sends hundreds.
	quietWrites = 10
	// eventLimit is how many events one Memcached may get in each round. A right operator tells each
	// creation, scaling and failure, and was never seen to need more than 16 for it.
	eventLimit = 60
)

// converges wants the state to be as the specs say, soon after the storm.
func (s *scenario) converges(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, env.Polled(s.namespace, s.observe)).WithTimeout(s.settle).Should(match.Make(func(w state) error {
		return s.inContext(s.compare(w))
	}).ByKubernetes(s.settle))
	s.log("all is as it should be")
}

// timelineLines is how much of the timeline a finding tells. All of it stands in the artifacts.
const timelineLines = 8

// inContext adds to a finding what the storm did to the Memcached that it is about.
func (s *scenario) inContext(err error) error {
	if err == nil {
		return nil
	}
	f := finding.Of(err)
	var own []string
	for _, line := range s.lines() {
		if strings.Contains(line, "your manager") || strings.Contains(line, "the API server") || s.concerns(line, f.Expected) {
			own = append(own, line)
		}
	}
	own = own[max(0, len(own)-timelineLines):]
	told := finding.New(f.Cause, "after the storm: "+f.Expected, "%s; what had happened:\n%s", f.Seen, strings.Join(own, "\n"))
	told.Fields = f.Fields
	return told
}

// concerns says whether a line of the timeline is about a Memcached that the text names.
func (s *scenario) concerns(line, text string) bool {
	return slices.ContainsFunc(s.targets, func(r *target) bool {
		return strings.Contains(text, r.Name) && strings.Contains(line, r.Name)
	})
}

// compare compares the namespace with the specs, the most telling difference first: every Memcached has its one
// Deployment, and tells the truth about it.
func (s *scenario) compare(w state) error {
	for _, look := range []func(*target, state) error{rightOwner, rightDeployment} {
		for _, r := range s.living() {
			if err := look(r, w); err != nil {
				return err
			}
		}
	}
	if err := noneTooMany(w); err != nil {
		return err
	}
	for _, r := range s.living() {
		if err := unavailable(w.memcacheds[r.Name]); err != nil {
			f := finding.Of(err)
			return finding.New("wrong-status", fmt.Sprintf("Memcached %s: %s", r.Name, f.Expected), "%s", f.Seen)
		}
	}
	return nil
}

func (s *scenario) living() []*target {
	var living []*target
	for _, r := range s.targets {
		if !r.gone {
			living = append(living, r)
		}
	}
	return living
}

// state is what a storm is about, by name.
type state struct {
	memcacheds  map[string]*unstructured.Unstructured
	deployments map[string]*appsv1.Deployment
}

func (s *scenario) observe(ctx context.Context) (state, error) {
	w := state{map[string]*unstructured.Unstructured{}, map[string]*appsv1.Deployment{}}
	for _, r := range s.living() {
		obj, err := r.Get(ctx)
		if err != nil {
			return w, fmt.Errorf("get Memcached %s: %w", r, err)
		}
		w.memcacheds[r.Name] = obj
	}
	var list appsv1.DeploymentList
	if err := env.Admin().List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
		return w, fmt.Errorf("list Deployments: %w", err)
	}
	for i, d := range list.Items {
		w.deployments[d.Name] = &list.Items[i]
	}
	return w, nil
}

// rightOwner wants today's Memcached as the controller, and not the one that had the name before.
func rightOwner(r *target, w state) error {
	d := w.deployments[r.Name]
	if d == nil {
		return nil // which rightDeployment has a word about
	}
	uid := w.memcacheds[r.Name].GetUID()
	expected := fmt.Sprintf("Deployment %s is controlled by the Memcached %s of today, uid %s", r.Name, r.Name, uid)
	owner := metav1.GetControllerOf(d)
	switch {
	case owner == nil:
		return finding.New("wrong-owner", expected, "it has no controller")
	case owner.UID != uid:
		return finding.New("wrong-owner", expected, "its controller is %s %s, uid %s", owner.Kind, owner.Name, owner.UID)
	}
	return nil
}

// rightDeployment compares the Deployment with the spec.
func rightDeployment(r *target, w state) error {
	d := w.deployments[r.Name]
	expected := fmt.Sprintf("Deployment %s has %d replicas, port %d and the image of MEMCACHED_IMAGE", r.Name, r.Size, r.Port)
	if d == nil {
		return finding.New("not-converged", expected, "there is no Deployment")
	}
	c, err := env.Container(d)
	if err != nil {
		return finding.New("not-converged", expected, "%s", finding.Of(err).Seen)
	}
	var fields []finding.Field
	if have := ptr.Deref(d.Spec.Replicas, 1); have != r.Size {
		fields = append(fields, finding.Field{Path: "spec.replicas", Want: fmt.Sprint(r.Size), Have: fmt.Sprint(have)})
	}
	if want := env.Run().MemcachedImage; c.Image != want {
		fields = append(fields, finding.Field{Path: "the container's image", Want: want, Have: c.Image})
	}
	if have := r.wrongPorts(d); have != "" {
		fields = append(fields, finding.Field{Path: "the port in the Pod template", Want: fmt.Sprint(r.Port), Have: have})
	}
	if len(fields) == 0 {
		return nil
	}
	f := finding.New("not-converged", expected, "%s", fields[0])
	f.Fields = fields
	return f
}

// wrongPorts looks for the port anywhere in the Pod template: how memcached is told is the operator's
// choice. It is "" when today's port is there, and memcached is told none that it had before. What else says an
// earlier one, such as the container's list of ports, opens nothing and misleads nobody but its readers.
func (m *target) wrongPorts(d *appsv1.Deployment) string {
	for _, port := range m.past {
		if env.TellsPort(d, port) {
			return fmt.Sprint(port)
		}
	}
	if !env.NamesPort(d, m.Port) {
		return "none"
	}
	return ""
}

// noneTooMany wants no Deployment besides one for each Memcached.
func noneTooMany(w state) error {
	owners := map[types.UID]string{}
	for name, m := range w.memcacheds {
		owners[m.GetUID()] = name
	}
	for name, d := range w.deployments {
		if w.memcacheds[name] != nil {
			continue
		}
		if owner := metav1.GetControllerOf(d); owner != nil && owners[owner.UID] != "" {
			return finding.New("duplicate", fmt.Sprintf("one Deployment for Memcached %s", owners[owner.UID]), "a second one, %s", name)
		}
		if len(d.OwnerReferences) == 0 { // so that nobody deletes it
			return finding.New("wrong-owner", fmt.Sprintf("Deployment %s was controlled by its Memcached, and is deleted with it", name), "it is there, without an owner")
		}
		return finding.New("leftover", fmt.Sprintf("no Deployment %s: its Memcached was deleted", name),
			"it is there, with the owner references %s", references(d))
	}
	return nil
}

func references(d *appsv1.Deployment) string {
	text := "["
	for _, ref := range d.OwnerReferences {
		text += fmt.Sprintf("%s %s, uid %s", ref.Kind, ref.Name, ref.UID)
	}
	return text + "]"
}

// becomesQuiet wants the manager to stop writing once there is nothing left to do.
func (s *scenario) becomesQuiet(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, s.quiet).WithTimeout(s.quietTimeout).Should(Succeed())
}

// quiet listens for a while whether anything is written.
func (s *scenario) quiet(ctx context.Context) error {
	since := env.RequestCount()
	before, err := s.observe(ctx)
	if err != nil {
		return err
	}
	if err := env.Sleep(ctx, quietFor); err != nil {
		return err
	}
	after, err := s.observe(ctx)
	if err != nil {
		return err
	}
	if err := s.compare(after); err != nil {
		return s.inContext(err)
	}
	expected := fmt.Sprintf("nothing changes any more, and at most %d writes in %s", quietWrites, quietFor)
	for _, r := range s.living() {
		if what := moved(r.Name, before, after); what != "" {
			return finding.New("keeps-writing", expected, "%s of %s changed once more", what, r.Name)
		}
	}
	var writes []apiproxy.Request
	for _, r := range s.targets {
		writes = append(writes, r.Writes(since)...)
	}
	if len(writes) > quietWrites {
		return finding.New("keeps-writing", expected, "%d writes, the last of them: %s", len(writes), writes[len(writes)-1])
	}
	return nil
}

// moved says what of a Memcached an operator has changed between two looks. The Deployment's own status
// is left out: that is the deployment controller's.
func moved(name string, before, after state) string {
	d, now := before.deployments[name], after.deployments[name]
	switch {
	case d == nil || now == nil || d.UID != now.UID:
		return "the Deployment"
	case d.Generation != now.Generation:
		return "the spec of the Deployment"
	case !reflect.DeepEqual(before.memcacheds[name].Object["status"], after.memcacheds[name].Object["status"]):
		return "the status"
	}
	return ""
}

// fewEvents counts the events of the busiest Memcached.
func (s *scenario) fewEvents(ctx context.Context) error {
	most, busiest := 0, ""
	for _, r := range s.living() {
		events, err := r.Events(ctx)
		if err != nil {
			return err
		}
		n := 0
		for _, e := range events {
			n += env.Times(e)
		}
		if n > most {
			most, busiest = n, r.Name
		}
	}
	if limit := eventLimit * s.rounds; most > limit {
		return finding.New("event-spam", fmt.Sprintf("at most %d events on one Memcached", limit), "%d on %s", most, busiest)
	}
	return nil
}
