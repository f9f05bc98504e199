// Package endpoints is task 7 of the CKA practice: mend a Service without endpoints.
package endpoints

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/practice"
)

// Program is the code of the task.
func Program() practice.Program {
	return practice.Program{
		Setup: func(ctx context.Context, s *practice.Setup) error {
			if err := s.Apply(ctx, "setup.yaml"); err != nil {
				return err
			}
			return s.Available(ctx, s.Values["namespace"])
		},
		Checks: map[string]practice.Check{"endpoints": endpoints, "answers": answers, "kept": kept},
	}
}

func endpoints(ctx context.Context, r *practice.Reader) error {
	expected := "the endpoints of the Service " + r.Values["service"] + " are the Pods of the Deployment " + r.Values["name"]
	return r.Eventually(ctx, func(ctx context.Context) error {
		s, d, slices := &corev1.Service{}, &appsv1.Deployment{}, &discoveryv1.EndpointSliceList{}
		in, its := client.InNamespace(r.Values["namespace"]), client.MatchingLabels{discoveryv1.LabelServiceName: r.Values["service"]}
		err := cmp.Or(client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Namespace: string(in), Name: r.Values["service"]}, s)),
			client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Namespace: string(in), Name: r.Values["name"]}, d)), r.List(ctx, slices, in, its))
		if err != nil {
			return err
		}
		selector, pods := labels.SelectorFromSet(s.Spec.Selector), labels.Set(d.Spec.Template.Labels)
		if len(s.Spec.Selector) == 0 || !selector.Matches(pods) {
			return finding.New("wrong-selector", expected, "its selector is %q, and the Deployment's Pods have the labels %q", selector, pods)
		}
		var ready []string
		for _, slice := range slices.Items {
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready == nil || *e.Conditions.Ready {
					ready = append(ready, e.Addresses...)
				}
			}
		}
		if len(ready) != int(d.Status.Replicas) {
			return finding.New("other-pods", expected, "the ready endpoints are %v, and the Deployment has %d Pods", ready, d.Status.Replicas)
		}
		return nil
	})
}

// answers connects through the API server's proxy. It speaks HTTP, which memcached answers with an error or by closing the connection.
func answers(ctx context.Context, r *practice.Reader) error {
	return r.Eventually(ctx, func(ctx context.Context) error {
		_, err := r.Raw(ctx, fmt.Sprintf("/api/v1/namespaces/%s/services/%s:11211/proxy/", r.Values["namespace"], r.Values["service"]))
		if text := fmt.Sprint(err); !strings.Contains(text, "error trying to reach service") || strings.Contains(text, "dial tcp") {
			return finding.New("no-answer", "memcached answers on port 11211 of the Service "+r.Values["service"], "%s", text)
		}
		return nil
	})
}

func kept(ctx context.Context, r *practice.Reader) error {
	s, all, in := &corev1.Service{}, &appsv1.DeploymentList{}, client.InNamespace(r.Values["namespace"])
	if err := cmp.Or(r.Get(ctx, client.ObjectKey{Namespace: string(in), Name: r.Values["service"]}, s), r.List(ctx, all, in)); err != nil {
		return err
	}
	if s.Spec.ClusterIP != r.Values["address"] {
		return finding.New("address", "the Service has the address "+r.Values["address"], "it has %s", s.Spec.ClusterIP)
	}
	for _, d := range all.Items {
		want := "app=" + d.Name + ",track=stable and the arguments [--port=11311]"
		has := fmt.Sprint(labels.Set(d.Spec.Template.Labels), " and the arguments ", d.Spec.Template.Spec.Containers[0].Args)
		if has != want && (d.Name == r.Values["name"] || d.Name == r.Values["other"]) {
			return finding.New("deployment", "the Pods of the Deployment "+d.Name+" have the labels "+want, "they have %s", has)
		}
	}
	return nil
}
