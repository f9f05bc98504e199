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
	// podPolicy and servicePolicy are the names of the policies and of their bindings.
	podPolicy     = "lab-pod-policy"
	servicePolicy = "lab-service-policy"
	// installLimit is how long the policies may take until they hold. It takes a second.
	installLimit = 15 * time.Second
	installPoll  = 100 * time.Millisecond
)

// InstallPodPolicy sees to it that no Pod outside of the system's own namespaces runs anything but the operand, gets at
// its node, or has a token of the API server's, and that no Service stands for an address of somebody else's. Pod templates
// obey the same rules with one exception: they may name another program or image, because some checks edit them so. Pods
// made from such a template are refused. When it returns, all of this holds. [AdmissionRule] refuses requests that would
// change it.
//
// Every Pod needs `automountServiceAccountToken: false`, its own or its ServiceAccount's.
func InstallPodPolicy(ctx context.Context, admin client.Client, operand string) error {
	pods := newPolicy(podPolicy, podRules(operand),
		on("", "pods", "pods/ephemeralcontainers", "replicationcontrollers", "podtemplates"),
		on("apps", "deployments", "replicasets", "statefulsets", "daemonsets"),
		on("batch", "jobs", "cronjobs"))
	pods.Spec.Variables = []admissionv1.Variable{
		{Name: "spec", Expression: `object.kind == "Pod" ? object.spec : object.kind == "PodTemplate" ? object.template.spec : ` +
			`object.kind == "CronJob" ? object.spec.jobTemplate.spec.template.spec : object.spec.template.spec`},
		{Name: "containers", Expression: "variables.spec.containers + (has(variables.spec.initContainers) ? variables.spec.initContainers : [])"},
	}
	services := newPolicy(servicePolicy, []rule{
		{"Services have no addresses of others", "!has(object.spec.externalIPs) || size(object.spec.externalIPs) == 0"},
	}, on("", "services"))
	for _, p := range []struct {
		policy  *admissionv1.ValidatingAdmissionPolicy
		refuses client.Object // and nothing else does
	}{{pods, wrongPod(operand)}, {services, wrongService()}} {
		if err := installPolicy(ctx, admin, p.policy, p.refuses); err != nil {
			return err
		}
	}
	return nil
}

// installPolicy returns when the policy is seen to refuse an object.
func installPolicy(ctx context.Context, admin client.Client, policy *admissionv1.ValidatingAdmissionPolicy, refused client.Object) error {
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	for _, obj := range []client.Object{policy, binding} {
		if err := admin.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("install %s: %w", policy.Name, err)
		}
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, installPoll, installLimit, true, func(ctx context.Context) (bool, error) {
		last = admin.Create(ctx, refused, client.DryRunAll)
		return last != nil && strings.Contains(last.Error(), policy.Name), ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("install %s: it does not hold: %w", policy.Name, errors.Join(err, last))
	}
	return nil
}

func wrongPod(operand string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podPolicy + "-test", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			HostPID: true, AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "c", Image: operand}},
		},
	}
}

func wrongService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: servicePolicy + "-test", Namespace: metav1.NamespaceDefault},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}, ExternalIPs: []string{"192.0.2.1"}},
	}
}

// on are the resources of a group.
func on(group string, resources ...string) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
	}}
}

// rule is in CEL.
type rule struct{ message, holds string }

// newPolicy holds everywhere but in the system's own namespaces.
func newPolicy(name string, rules []rule, resources ...admissionv1.NamedRuleWithOperations) *admissionv1.ValidatingAdmissionPolicy {
	p := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "local-path-storage"},
				}}},
				ResourceRules: resources,
			},
		},
	}
	for _, r := range rules {
		p.Spec.Validations = append(p.Spec.Validations, admissionv1.Validation{Expression: r.holds, Message: "under classroom grade " + r.message})
	}
	return p
}

// podRules are about variables.spec, that of a Pod or of a Pod template. A field that is not set counts as false.
func podRules(operand string) []rule {
	const pod, security = "variables.spec", "c.securityContext"
	each := func(condition string) string { return "variables.containers.all(c, " + condition + ")" }
	pods := func(condition string) string { return `object.kind != "Pod" || ` + condition }
	unset := func(of string, fields ...string) string {
		var all []string
		for _, f := range fields {
			all = append(all, fmt.Sprintf("(!has(%s.%s) || !%[1]s.%[2]s)", of, f))
		}
		return strings.Join(all, " && ")
	}
	return []rule{
		{"Pods run no image but " + operand, pods(each(fmt.Sprintf("c.image == %q", operand)))},
		{"Pods run memcached and nothing else", pods(each(`(!has(c.command) || c.command[0] in ["memcached", "/usr/bin/memcached", "/usr/local/bin/memcached"])` +
			` && (!has(c.args) || has(c.command) || c.args[0].startsWith("-") || c.args[0] == "memcached")`))},
		{"memcached writes no files, and runs no program of others", each(`[(has(c.command) ? c.command : []), (has(c.args) ? c.args : [])].all(list, list.all(a, ` +
			`!a.matches("^-[A-Za-z]*e") && !a.startsWith("--memory-f") && !a.contains("ext_path") && !a.contains("proxy_config")))`)},
		// The kubelet puts a variable's value in its place later: "-$(EMPTY)e" is another word than it looks.
		{"variables are whole values on a command line", each(`[(has(c.command) ? c.command : []), (has(c.args) ? c.args : [])].all(list, list.all(a, ` +
			`!a.contains("$(") || a.matches("^(-[A-Za-z]|--[a-z-]+=)?[$][(][A-Za-z_][A-Za-z0-9_]*[)]$")))`)},
		{"Pods keep their folder and their place in the queue", unset(pod, "priorityClassName") + " && " + each(unset("c", "workingDir"))},
		{"Pods get no other containers later", fmt.Sprintf("!has(%s.ephemeralContainers)", pod)},
		// What a variable names could be loaded in place of the operand's own: LD_PRELOAD, PATH.
		{"environment variables are numbers", each(`!has(c.envFrom) && (!has(c.env) || c.env.all(e, ` +
			`!has(e.valueFrom) && (!has(e.value) || e.value.matches("^[0-9]*$")) && !e.name.startsWith("LD_") && e.name != "PATH"))`)},
		// Sysctls are a Pod's own: a kubelet takes no others.
		{"Pods share nothing with their node", unset(pod, "hostNetwork", "hostPID", "hostIPC")},
		{"containers have no more rights than they need", each(fmt.Sprintf("!has(%s) || (%s && !has(%[1]s.procMount) && (!has(%[1]s.capabilities) || !has(%[1]s.capabilities.add)))",
			security, unset(security, "privileged", "allowPrivilegeEscalation")))},
		{"Pods keep the user of the image and the defaults of system calls", defaults(pod+".securityContext") + " && " + each(defaults(security))},
		{"containers have no port of their node", each("!has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0)")},
		// The token of a ServiceAccount is in a volume of another kind.
		{"volumes are emptyDir, and no Pod has a ServiceAccount's token", fmt.Sprintf("!has(%s.volumes) || %[1]s.volumes.all(v, has(v.emptyDir))", pod)},
		{"volumes are mounted in /data, /run, /tmp or /var", each(`(!has(c.volumeMounts) || c.volumeMounts.all(m, ` +
			`!m.mountPath.contains("..") && ["/data", "/run", "/tmp", "/var"].exists(d, m.mountPath == d || m.mountPath.startsWith(d + "/"))))` +
			fmt.Sprintf(" && (!has(c.terminationMessagePath) || c.terminationMessagePath == %q)", corev1.TerminationMessagePathDefault))},
		{"containers have no hooks", each("!has(c.lifecycle)")},
		{"probes run no programs and ask no other hosts", each(harmless("c.livenessProbe") + " && " + harmless("c.readinessProbe") + " && " + harmless("c.startupProbe"))},
	}
}

// defaults is the condition for a security context that gives up nothing which a container has by default.
func defaults(security string) string {
	return fmt.Sprintf("(!has(%s) || ((!has(%[1]s.runAsUser) || %[1]s.runAsUser != 0) && !has(%[1]s.seLinuxOptions)"+
		" && (!has(%[1]s.seccompProfile) || %[1]s.seccompProfile.type != %[2]q) && (!has(%[1]s.appArmorProfile) || %[1]s.appArmorProfile.type != %[2]q)))",
		security, "Unconfined")
}

// harmless is the condition for a probe that asks its own container.
func harmless(probe string) string {
	return fmt.Sprintf("(!has(%s) || (!has(%[1]s.exec) && (!has(%[1]s.httpGet) || !has(%[1]s.httpGet.host)) && (!has(%[1]s.tcpSocket) || !has(%[1]s.tcpSocket.host))))", probe)
}
