package apiproxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// policyName is the name of the policy and of its binding.
	policyName = "lab-pod-policy"
	// installLimit is how long a policy may take until it holds. It takes a second.
	installLimit = 15 * time.Second
	installPoll  = 100 * time.Millisecond
)

// InstallPodPolicy sees to it that no Pod outside of the system's own namespaces runs anything but the operand, or gets at its
// node. When it returns, that holds. Nobody whose requests pass [AdmissionRule] can take it away.
func InstallPodPolicy(ctx context.Context, admin client.Client, operand string) error {
	for _, obj := range []client.Object{policy(operand), binding()} {
		if err := admin.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("restrict Pods: %w", err)
		}
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, installPoll, installLimit, true, func(ctx context.Context) (bool, error) {
		last = admin.Create(ctx, forbidden(operand), client.DryRunAll)
		return last != nil && strings.Contains(last.Error(), policyName), ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("restrict Pods: the policy does not hold: %w", errors.Join(err, last))
	}
	return nil
}

// forbidden is a Pod that the policy refuses and nothing else does.
func forbidden(operand string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "lab-pod-policy-test", Namespace: metav1.NamespaceDefault},
		Spec:       corev1.PodSpec{HostPID: true, Containers: []corev1.Container{{Name: "c", Image: operand}}},
	}
}

func binding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

func policy(operand string) *admissionv1.ValidatingAdmissionPolicy {
	fail := admissionv1.Fail
	p := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "local-path-storage"},
				}}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods", "pods/ephemeralcontainers"}},
				}}},
			},
			Variables: []admissionv1.Variable{{
				Name: "containers", Expression: "object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])",
			}},
		},
	}
	for _, r := range rules(operand) {
		p.Spec.Validations = append(p.Spec.Validations, admissionv1.Validation{Expression: r.holds, Message: "under classroom grade " + r.message})
	}
	return p
}

type rule struct{ message, holds string }

// rules are in CEL. A field that is not set counts as false.
func rules(operand string) []rule {
	each := func(condition string) string { return "variables.containers.all(c, " + condition + ")" }
	unset := func(fields ...string) string {
		var all []string
		for _, f := range fields {
			all = append(all, fmt.Sprintf("(!has(%s) || !%[1]s)", f))
		}
		return strings.Join(all, " && ")
	}
	security := "c.securityContext"
	return []rule{
		{"Pods run no image but " + operand, each(fmt.Sprintf("c.image == %q", operand))},
		{"Pods run memcached and nothing else", each(`(!has(c.command) || c.command[0] in ["memcached", "/usr/bin/memcached", "/usr/local/bin/memcached"])` +
			` && (!has(c.args) || has(c.command) || c.args[0].startsWith("-") || c.args[0] == "memcached")`)},
		// Sysctls are a Pod's own: a kubelet takes no others.
		{"Pods share nothing with their node", unset("object.spec.hostNetwork", "object.spec.hostPID", "object.spec.hostIPC")},
		{"containers have no more rights than they need", each(fmt.Sprintf("!has(%s) || (%s && !has(%[1]s.procMount) && (!has(%[1]s.capabilities) || !has(%[1]s.capabilities.add)))",
			security, unset(security+".privileged")))},
		{"containers have no port of their node", each("!has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0)")},
		{"volumes hold nothing of a node or of others", "!has(object.spec.volumes) || object.spec.volumes.all(v, " +
			"has(v.emptyDir) || has(v.configMap) || has(v.secret) || has(v.projected) || has(v.downwardAPI))"},
		{"containers have no hooks", each("!has(c.lifecycle)")},
		{"probes run no programs and ask no other hosts", each(harmless("c.livenessProbe") + " && " + harmless("c.readinessProbe") + " && " + harmless("c.startupProbe"))},
	}
}

// harmless is the condition for a probe that asks its own container.
func harmless(probe string) string {
	return fmt.Sprintf("(!has(%s) || (!has(%[1]s.exec) && (!has(%[1]s.httpGet) || !has(%[1]s.httpGet.host)) && (!has(%[1]s.tcpSocket) || !has(%[1]s.tcpSocket.host))))", probe)
}
