package relations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// foreignNote is an annotation, and a label, that somebody else has put on the Service.
const foreignNote = "example.org/note"

// service reads the Service of the Memcached's name.
func service(ctx context.Context, m env.Memcached) (*corev1.Service, error) {
	s := &corev1.Service{}
	return s, env.Admin().Get(ctx, m.Key(), s)
}

// serviceOf reads it when it is polled; one that is not there has no UID.
func serviceOf(m env.Memcached) func(context.Context) (*corev1.Service, error) {
	return env.Polled(m.Namespace, func(ctx context.Context) (*corev1.Service, error) {
		s, err := service(ctx, m)
		if apierrors.IsNotFound(err) {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}, nil
		}
		return s, err
	})
}

// exist wants a Service that is there.
func exist() *match.Matcher { return serviceThat(func(*corev1.Service) error { return nil }) }

// serviceThat makes a matcher of a condition for a Service that is there.
func serviceThat(condition func(*corev1.Service) error) *match.Matcher {
	return match.Make(func(s *corev1.Service) error {
		if s.UID == "" {
			return finding.New("no-service", "a Service "+s.Name, "none")
		}
		return condition(s)
	})
}

// havePort wants a Service on a port.
func havePort(port int32) *match.Matcher {
	return serviceThat(func(s *corev1.Service) error {
		if slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port }) {
			return nil
		}
		return finding.New("wrong-service-port", fmt.Sprintf("the Service has the port %d, as spec.containerPort says", port), "%s", ports(s))
	})
}

// endpointsOf lists the EndpointSlices of the Service.
func endpointsOf(m env.Memcached) func(context.Context) ([]discoveryv1.EndpointSlice, error) {
	return env.Polled(m.Namespace, func(ctx context.Context) ([]discoveryv1.EndpointSlice, error) {
		list := &discoveryv1.EndpointSliceList{}
		err := env.Admin().List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: m.Name})
		return list.Items, err
	})
}

// haveEndpoints wants as many endpoints that are ready as the Memcached has Pods, on its port.
func haveEndpoints(m env.Memcached) *match.Matcher {
	return match.Make(func(all []discoveryv1.EndpointSlice) error {
		ready := 0
		for _, slice := range all {
			before := ready
			for _, e := range slice.Endpoints {
				if ptr.Deref(e.Conditions.Ready, true) {
					ready++
				}
			}
			for _, p := range slice.Ports {
				if port := ptr.Deref(p.Port, 0); port != m.Port && ready > before {
					return finding.New("wrong-target-port", fmt.Sprintf("the Service leads to port %d of its Pods", m.Port), "to port %d", port)
				}
			}
		}
		expected := fmt.Sprintf("the Service leads to %d Pods", m.Size)
		switch {
		case ready > int(m.Size):
			return finding.New("routes-to-others", expected, "to %d", ready)
		case ready < int(m.Size):
			return finding.New("routes-nowhere", expected, "to %d", ready)
		}
		return nil
	})
}

// drifts are edits of a Service that have to be put back.
var drifts = []func(*corev1.Service){
	func(s *corev1.Service) {
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].Port++
			s.Spec.Ports[i].TargetPort = intstr.FromInt32(1)
		}
	},
	func(s *corev1.Service) {
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].TargetPort = intstr.FromInt32(1)
		}
	},
	func(s *corev1.Service) { s.Spec.Selector = map[string]string{"example.org/who": "nobody"} },
	func(s *corev1.Service) {
		s.Spec.Selector = labels.Merge(s.Spec.Selector, labels.Set{"example.org/who": "nobody"})
	},
}

// ports are the ports of a Service, and where they lead.
func ports(s *corev1.Service) string {
	if len(s.Spec.Ports) == 0 {
		return "no port"
	}
	var all []string
	for _, p := range s.Spec.Ports {
		all = append(all, fmt.Sprintf("%d to %s", p.Port, p.TargetPort.String()))
	}
	return strings.Join(all, ", ")
}

// editService changes the Service as somebody with kubectl would, and sets what no operator answers for.
func editService(ctx context.Context, m env.Memcached, change func(*corev1.Service)) error {
	s, err := service(ctx, m)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, foreignNote, "mine")
	metav1.SetMetaDataLabel(&s.ObjectMeta, foreignNote, "mine")
	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	change(s)
	return env.Admin().Update(ctx, s)
}

// beRepaired wants ports and selector as they were, in the Service that was there, with what others have set.
func beRepaired(before *corev1.Service) *match.Matcher {
	const kept = "what somebody else set on the Service stays"
	return serviceThat(func(s *corev1.Service) error {
		switch {
		case s.UID != before.UID || s.Spec.ClusterIP != before.Spec.ClusterIP:
			return env.Final(finding.New("service-replaced", "Service "+s.Name+" is changed where it is", "it is another one, with the address %s", s.Spec.ClusterIP))
		case s.Annotations[foreignNote] == "":
			return env.Final(finding.New("metadata-removed", kept, "an annotation is gone"))
		case s.Labels[foreignNote] == "":
			return env.Final(finding.New("metadata-removed", kept, "a label is gone"))
		case s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP:
			return env.Final(finding.New("metadata-removed", kept, "sessionAffinity was ClientIP, and is %s", s.Spec.SessionAffinity))
		case ports(s) != ports(before):
			return finding.New("port-not-repaired", "the port of the Service is put back to "+ports(before), "%s", ports(s))
		case !maps.Equal(s.Spec.Selector, before.Spec.Selector):
			return finding.New("selector-not-repaired", fmt.Sprintf("the selector of the Service is put back to %v", before.Spec.Selector), "%v", s.Spec.Selector)
		}
		return nil
	})
}

func deleteService(ctx context.Context, m env.Memcached) error {
	return env.Admin().Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}})
}

// writesNoService wants no write of the Service since an index of the manager's requests, but patches and applies that have changed
// nothing.
func writesNoService(ctx context.Context, m env.Memcached, before *corev1.Service, since int) error {
	now, err := service(ctx, m)
	if err != nil {
		return err
	}
	for _, w := range m.Writes(since) {
		if w.Resource == env.Services && (w.Verb != "patch" || now.ResourceVersion != before.ResourceVersion) {
			return finding.New("writes-each-pass", "a pass that has nothing to change writes nothing", "%s", w)
		}
	}
	return nil
}

// createForeignService makes a Service of the Memcached's name, with labels and owners that are not the operator's.
func createForeignService(ctx context.Context, m env.Memcached, marks map[string]string, owners ...metav1.OwnerReference) (*corev1.Service, error) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: marks, OwnerReferences: owners},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"example.org/who": "somebody"}},
	}
	return s, env.Admin().Create(ctx, s)
}

// isUntouched wants the foreign Service as it was made.
func isUntouched(ctx context.Context, theirs *corev1.Service) error {
	now := &corev1.Service{}
	if err := env.Admin().Get(ctx, client.ObjectKeyFromObject(theirs), now); err != nil {
		return err
	}
	if now.ResourceVersion != theirs.ResourceVersion {
		return finding.New("service-changed", "a Service that is somebody else's stays as it is", "it was changed: selector %v, owners %v", now.Spec.Selector, now.OwnerReferences)
	}
	return nil
}
