package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/trace"
)

// moment is a step that lab 0 asks about.
type moment struct {
	step
	questions []question
}

// question is one of lab 0.
type question struct {
	id, text string
	// who is the actor in what was seen, "" if it was not seen.
	who func([]trace.Action) string
	// realPods says that only where containers really run somebody does it.
	realPods bool
	why      string
}

// nobody is who does what is not done.
const nobody = "nobody"

// actors are whom an answer can name, as the trace does.
var actors = []string{
	trace.You, "kube-apiserver", "deployment-controller", "replicaset-controller", "kube-scheduler", "kubelet", "garbage-collector", nobody,
}

// web is the Deployment of lab 0, alone its Pod that belongs to nobody.
const web, alone = "web", "alone"

// listening is how long to wait for somebody before it is nobody. A controller acts within milliseconds.
const listening = 3 * time.Second

// moments are lab 0. Each begins with the world as the one before left it.
func moments(image string) []moment {
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: image}}}
	return []moment{{
		step{
			title:   "Create a Deployment of two Pods.",
			command: "kubectl create deployment web --image=" + image + " --replicas=2",
			do: func(ctx context.Context, c client.Client) (string, error) {
				labels := map[string]string{"app": web}
				return "", c.Create(ctx, &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: web, Labels: labels},
					Spec: appsv1.DeploymentSpec{
						Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
						Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
					},
				}, client.FieldOwner("kubectl-create"))
			},
			missing: func(w *world) string { return incomplete(w.Memory, 2) },
		}, []question{
			{
				id: "makes-the-replicaset", text: "Who makes the ReplicaSet?", who: actorOf("created", "ReplicaSet"),
				why: "The API server stores objects and runs nothing. The deployment controller watches Deployments, finds that there is no " +
					"ReplicaSet for this one, and makes it.",
			},
			{
				id: "makes-the-pods", text: "Who makes the Pods?", who: actorOf("created", "Pod"),
				why: "The deployment controller makes no Pods. It makes a ReplicaSet, and the replicaset controller makes as many Pods as that asks for.",
			},
			{
				id: "chooses-the-node", text: "Who chooses the node of a Pod?", who: actorOf("found a node for", "Pod"),
				why: "The scheduler watches Pods without a node. It writes the name of a node into each, and starts nothing.",
			},
			{
				id: "starts-the-containers", text: "Who starts the containers?", who: actorOf("started", "Pod"), realPods: true,
				why: "Each node has a kubelet. It watches the Pods that have its node's name, and starts their containers. No controller does.",
			},
		},
	}, {
		step{
			title:   "Delete one of the Pods.",
			command: "kubectl delete pod $(kubectl get pods -o name | head -1)",
			do: func(ctx context.Context, c client.Client) (string, error) {
				pods := &corev1.PodList{}
				if err := c.List(ctx, pods, client.InNamespace(namespace)); err != nil || len(pods.Items) == 0 {
					return "", fmt.Errorf("find a Pod: %w", err)
				}
				return "", c.Delete(ctx, &pods.Items[0])
			},
			missing: func(w *world) string {
				if actorOf("created", "Pod")(w.told) == "" {
					return "there is no other Pod"
				}
				return incomplete(w.Memory, 2)
			},
			linger: listening,
		}, []question{{
			id: "replaces-a-pod", text: "Who makes another Pod?", who: actorOf("created", "Pod"),
			why: "A Pod is never moved or revived. The replicaset controller wants two, counts one, and makes a new one, with a new name.",
		}},
	}, {
		step{
			title:   "Ask the ReplicaSet for four, behind the Deployment's back.",
			command: "kubectl scale replicaset --all --replicas=4",
			do: func(ctx context.Context, c client.Client) (string, error) {
				sets := &appsv1.ReplicaSetList{}
				if err := c.List(ctx, sets, client.InNamespace(namespace)); err != nil || len(sets.Items) != 1 {
					return "", fmt.Errorf("find the ReplicaSet among %d: %w", len(sets.Items), err)
				}
				scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
				return "", c.SubResource("scale").Update(ctx, &sets.Items[0], client.WithSubResourceBody(scale), client.FieldOwner("kubectl-scale"))
			},
			missing: func(w *world) string {
				if len(scalings(w.told)) < 2 {
					return "nobody has scaled the ReplicaSet back"
				}
				return incomplete(w.Memory, 2)
			},
			linger: time.Second, // the Pods that were asked for meanwhile come, and go
		}, []question{{
			id: "undoes-your-change", text: "Who scales the ReplicaSet back to two?",
			who: func(told []trace.Action) string {
				if all := scalings(told); len(all) > 1 {
					return all[len(all)-1].Actor
				}
				return ""
			},
			why: "The ReplicaSet belongs to the Deployment, and the Deployment says two. Its controller heard of the change, compared, and put it " +
				"back. Your operator will do the same with what belongs to it. Meanwhile the replicaset controller may have made two more " +
				"Pods, for it had read four, and then deletes them: each controller acts on what it has read last.",
		}},
	}, {
		step{
			title:   "Make a Pod that belongs to nobody, and delete it.",
			command: "kubectl run alone --image=" + image + "\nkubectl delete pod alone",
			do: func(ctx context.Context, c client.Client) (string, error) {
				lonely := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: alone}, Spec: pod}
				if err := c.Create(ctx, lonely, client.FieldOwner("kubectl-run")); err != nil {
					return "", err
				}
				return "", c.Delete(ctx, lonely)
			},
			missing: func(w *world) string {
				if !gone(w.Memory, alone) {
					return "the Pod is still there"
				}
				return ""
			},
			linger: listening,
		}, []question{{
			id: "replaces-a-lone-pod", text: "Who makes a new Pod in its place?",
			who: func(told []trace.Action) string {
				for _, a := range told {
					if a.Verb == "created" && a.Kind == "Pod" && a.Actor != trace.You && !strings.HasPrefix(a.Name, web+"-") {
						return a.Actor
					}
				}
				return nobody
			},
			why: "For three seconds after its end nobody did. A Pod comes back because some object asks for it, and a controller watches that object. " +
				"Here is no such object. (A kubelet starts containers again that have ended, but not a Pod that was deleted.)",
		}},
	}, {
		step{
			title:   "Delete the Deployment.",
			command: "kubectl delete deployment web",
			do: func(ctx context.Context, c client.Client) (string, error) {
				return "", c.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: web}},
					client.PropagationPolicy(metav1.DeletePropagationBackground))
			},
			missing: func(w *world) string { return leftovers(w.Memory) },
		}, []question{{
			id: "clears-up", text: "Who removes the ReplicaSet?", who: actorOf("removed", "ReplicaSet"),
			why: "Each object names its owner. The garbage collector watches all objects, and removes those whose owner is gone. The deployment " +
				"controller has nothing to do with it.",
		}},
	}}
}

// actorOf is who did something first to an object of a kind.
func actorOf(verb, kind string) func([]trace.Action) string {
	return func(told []trace.Action) string {
		i := slices.IndexFunc(told, func(a trace.Action) bool { return a.Verb == verb && a.Kind == kind })
		if i < 0 {
			return ""
		}
		return told[i].Actor
	}
}

// scalings are the changes of the number of a ReplicaSet.
func scalings(told []trace.Action) []trace.Action {
	return slices.DeleteFunc(slices.Clone(told), func(a trace.Action) bool { return a.Verb != "scaled" || a.Kind != "ReplicaSet" })
}

// gone says whether there is no Pod of a name.
func gone(m *trace.Memory, name string) bool {
	for _, object := range m.Objects {
		if _, ok := object.(*corev1.Pod); ok && object.GetName() == name {
			return false
		}
	}
	return true
}
