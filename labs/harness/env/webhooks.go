package env

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
)

// webhookDir is where the workspace keeps its webhook configurations.
const webhookDir = "config/webhook"

// canaries are, for each kind of webhook configuration, objects that nobody else creates in namespaces of checks.
var canaries = map[string]client.Object{
	"MutatingWebhookConfiguration":   &coordinationv1.Lease{},
	"ValidatingWebhookConfiguration": &policyv1.PodDisruptionBudget{},
}

// canary is a webhook that fails for these objects, because nobody listens at its address.
var canary = admissionv1.ValidatingWebhook{
	Name:         "canary.lab.example.com",
	ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")},
	SideEffects:  new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{
		APIGroups:   []string{coordinationv1.GroupName, policyv1.GroupName},
		APIVersions: []string{"v1"},
		Resources:   []string{"leases", "poddisruptionbudgets"},
	}}},
}

// Webhooks are the webhook configurations of the workspace, of both kinds: they have the same fields. Without any, the error is a
// finding with the cause "no-webhook".
func Webhooks() (all []*admissionv1.ValidatingWebhookConfiguration, err error) {
	manifests, err := generate.ReadManifests(filepath.Join(current.config.Workspace, filepath.FromSlash(webhookDir)))
	for _, m := range manifests {
		if configuration := (&admissionv1.ValidatingWebhookConfiguration{}); canaries[m.Kind()] != nil && err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, configuration)
			all = append(all, configuration)
		}
	}
	if err == nil && len(all) > 0 {
		return all, nil
	}
	seen := "none; `make manifests` in the workspace writes them from your markers"
	if err != nil {
		seen = err.Error()
	}
	return nil, finding.New("no-webhook", "webhook configurations in "+webhookDir, "%s", seen)
}

// InstallWebhooks installs the workspace's webhook configurations for some namespaces, until the check ends. The API server calls the
// manager of this process at its address, not through a Service, as controller-runtime's envtest has it. InstallWebhooks returns when
// the API server calls them: it then calls [canary], too, which is added to each.
func InstallWebhooks(ctx context.Context, namespaces ...string) {
	ginkgo.GinkgoHelper()
	all, err := Webhooks()
	require(err)
	manager := Manager()
	for _, configuration := range all {
		for i := range configuration.Webhooks {
			to := &configuration.Webhooks[i].ClientConfig
			if to.Service != nil && to.Service.Path != nil {
				to.URL, to.Service = new("https://"+manager.webhooks+*to.Service.Path), nil
			}
			to.CABundle = manager.certificate
		}
		configuration.Webhooks = append(configuration.Webhooks, canary)
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces},
			}}
		}
		configuration.Name = namespaces[0] + strings.ToLower(configuration.Kind)
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
		require(err)
		installed := &unstructured.Unstructured{Object: object}
		require(current.admin.Create(ctx, installed))
		ginkgo.DeferCleanup(func(ctx context.Context) error { return client.IgnoreNotFound(current.admin.Delete(ctx, installed)) })
		tried := canaries[configuration.Kind].DeepCopyObject().(client.Object)
		tried.SetNamespace(namespaces[0])
		tried.SetName("probe")
		require(until(ctx, "the API server knows "+configuration.Name, func(ctx context.Context) (bool, error) {
			err := current.admin.Create(ctx, tried, client.DryRunAll)
			if err != nil && strings.Contains(err.Error(), canary.Name) {
				return true, nil
			}
			return false, err
		}))
	}
}

// webhookFailed is the finding about an error of a request that a webhook gave no answer to, nil for any other. A webhook that
// panics gives none, either.
func webhookFailed(err error) *finding.Finding {
	if !serversFault(err) || !strings.Contains(err.Error(), "webhook") {
		return nil
	}
	return finding.New("webhook-failed", "your webhook answers the API server", "%v", err)
}

// serveWebhooks prepares what the manager needs to serve webhooks at [ManagerProcess.webhooks]: a certificate in its home. It returns
// the flags that say so.
func (m *ManagerProcess) serveWebhooks(address string) (flags []string, err error) {
	host, port, _ := strings.Cut(address, ":")
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err == nil {
			err = os.WriteFile(filepath.Join(m.home, name), data, 0o644) // nobody else can enter the home
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make the manager's certificate: %w", err)
	}
	m.webhooks, m.certificate = address, certificate
	return []string{"webhook-port=" + port, "webhook-cert-path=" + m.home}, nil
}
