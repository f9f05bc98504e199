package relations

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
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

const somebodys = "example.org/note" // an annotation and a label that somebody else has put on the Service

// service reads the Service of the Memcached's name.
func service(ctx context.Context, m env.Memcached) (*corev1.Service, error) {
	s := &corev1.Service{}
	return s, env.Admin().Get(ctx, m.Key(), s)
}

// serviceOf reads it when it is polled; one that is not there has no UID.
func serviceOf(m env.Memcached) func(context.Context) (*corev1.Service, error) {
	return env.Polled(func(ctx context.Context) (*corev1.Service, error) {
		s, err := service(ctx, m)
		if apierrors.IsNotFound(err) {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}, nil
		}
		return s, err
	})
}

// exist wants a Service that is there.
func exist() *match.Matcher {
	return match.Make(func(s *corev1.Service) error {
		if s.UID == "" {
			return finding.New("no-service", "a Service "+s.Name, "none")
		}
		return nil
	})
}

// havePort wants a Service on a port.
func havePort(port int32) gomegatypes.GomegaMatcher {
	return SatisfyAll(exist(), match.Because("wrong-service-port",
		fmt.Sprintf("the Service has the port %d, as spec.containerPort says", port),
		WithTransform(ports, ContainElement(HavePrefix("%d ", port)))))
}

// ports are the ports of a Service, and where they lead.
func ports(s *corev1.Service) (all []string) {
	for _, p := range s.Spec.Ports {
		all = append(all, fmt.Sprintf("%d to %s", p.Port, p.TargetPort.String()))
	}
	return all
}

// endpointsOf lists the EndpointSlices of the Service.
func endpointsOf(m env.Memcached) func(context.Context) ([]discoveryv1.EndpointSlice, error) {
	return env.Polled(func(ctx context.Context) ([]discoveryv1.EndpointSlice, error) {
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

// edits of a Service have to be put back.
var edits = []func(*corev1.Service){
	func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(1) },
	func(s *corev1.Service) {
		s.Spec.Selector = labels.Merge(s.Spec.Selector, labels.Set{"example.org/who": "nobody"})
	},
}

// editService changes the Service as somebody with kubectl would, and sets what no operator answers for.
func editService(ctx context.Context, m env.Memcached, edit func(*corev1.Service)) error {
	s, err := service(ctx, m)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, somebodys, "mine")
	metav1.SetMetaDataLabel(&s.ObjectMeta, somebodys, "mine")
	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	edit(s)
	return env.Admin().Update(ctx, s)
}

// beRepaired wants a Service with ports and selector as they were.
func beRepaired(before *corev1.Service) gomegatypes.GomegaMatcher {
	return SatisfyAll(
		match.Because("port-not-repaired", "the port of the Service is put back", WithTransform(ports, Equal(ports(before)))),
		match.Because("selector-not-repaired", "the selector of the Service is put back", HaveField("Spec.Selector", before.Spec.Selector)))
}

// beTheSame wants the Service that was there before, with what others have set.
func beTheSame(before *corev1.Service) gomegatypes.GomegaMatcher {
	kept := func(field string, stock any) *match.Matcher {
		return match.Because("metadata-removed", "what somebody else set on the Service stays", HaveField(field, stock))
	}
	return SatisfyAll(match.Because("service-replaced", "the Service is changed where it is", HaveField("UID", before.UID)),
		kept("Annotations", HaveKey(somebodys)), kept("Labels", HaveKey(somebodys)), kept("Spec.SessionAffinity", corev1.ServiceAffinityClientIP))
}

// writesNoService wants no write of the Service since an index of the manager's requests, but patches that have changed nothing.
func writesNoService(ctx context.Context, m env.Memcached, since int) error {
	now, err := service(ctx, m)
	if err != nil {
		return err
	}
	for _, w := range m.Writes(since) {
		if w.Resource == "services" && (w.Verb != "patch" || w.ResourceVersion != now.ResourceVersion) {
			return finding.New("writes-each-pass", "a pass that has nothing to change writes nothing", "%s", w)
		}
	}
	return nil
}

// createForeignService makes a Service of the Memcached's name that is somebody else's.
func createForeignService(ctx context.Context, m env.Memcached) (*corev1.Service, error) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"example.org/who": "somebody"}},
	}
	return s, env.Admin().Create(ctx, s)
}

// isUntouched wants the foreign Service as it was made.
func isUntouched(ctx context.Context, theirs *corev1.Service) error {
	now := theirs.DeepCopy()
	err := env.Admin().Get(ctx, client.ObjectKeyFromObject(theirs), now)
	if err == nil && now.ResourceVersion != theirs.ResourceVersion {
		err = finding.New("service-changed", "a Service that is somebody else's stays as it is",
			"it was changed: selector %v, owners %v", now.Spec.Selector, now.OwnerReferences)
	}
	return err
}
