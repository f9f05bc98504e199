package apiproxy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// refusal is what the rule says about a request, as the API server would understand it.
func refusal(t *testing.T, req *http.Request) string {
	t.Helper()
	factory := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(req)
	if err != nil {
		return err.Error()
	}
	return apiproxy.AdmissionRule(req, info)
}

func TestWhatAnOperatorNeedsPasses(t *testing.T) {
	for _, tc := range []struct{ method, path string }{
		{"GET", "/api"}, {"GET", "/version"}, {"GET", "/openapi/v3/apis/apps/v1"},
		{"GET", "/apis/cache.example.com/v1alpha1/memcacheds?watch=true"},
		{"GET", "/api/v1/nodes"}, {"GET", "/api/v1/namespaces/n/pods/p/log"},
		{"PUT", "/apis/cache.example.com/v1alpha1/namespaces/n/memcacheds/m/status"},
		{"PUT", "/apis/cache.example.com/v1alpha1/namespaces/n/memcacheds/m/finalizers"},
		{"POST", "/apis/apps/v1/namespaces/n/deployments"},
		{"PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale"},
		{"DELETE", "/api/v1/namespaces/n/pods"},
		{"POST", "/api/v1/namespaces/n/events"}, {"POST", "/apis/events.k8s.io/v1/namespaces/n/events"},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
	} {
		if why := refusal(t, httptest.NewRequest(tc.method, tc.path, nil)); why != "" {
			t.Errorf("%s %s: %s", tc.method, tc.path, why)
		}
	}
}

func TestWaysOutOfTheClusterAreClosed(t *testing.T) {
	for name, tc := range map[string]struct{ method, path string }{
		"an address in a Node":             {"GET", "/api/v1/nodes/n:80/proxy/latest/meta-data"},
		"an address in a Pod":              {"GET", "/api/v1/namespaces/n/pods/p:80/proxy/"},
		"an address in a Service":          {"POST", "/api/v1/namespaces/n/services/s/proxy"},
		"the old form of the same":         {"GET", "/api/v1/proxy/namespaces/n/services/s"},
		"a shell in a Pod":                 {"GET", "/api/v1/namespaces/n/pods/p/exec?command=sh"},
		"a new container in a Pod":         {"PATCH", "/api/v1/namespaces/n/pods/p/ephemeralcontainers"},
		"a Node of one's own":              {"PUT", "/api/v1/nodes/n/status"},
		"a webhook":                        {"POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"},
		"the policy for Pods":              {"DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/lab-pod-policy"},
		"an API server of one's own":       {"POST", "/apis/apiregistration.k8s.io/v1/apiservices"},
		"a conversion webhook":             {"PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/memcacheds.cache.example.com"},
		"more rights":                      {"POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"},
		"a certificate":                    {"POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests"},
		"a token of the system":            {"POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token"},
		"a token that lies about":          {"GET", "/api/v1/secrets"},
		"the same, and one at a time":      {"GET", "/api/v1/watch/namespaces/kube-system/secrets/s"},
		"an address of the API server's":   {"GET", "/api/v1/componentstatuses/controller-manager"},
		"all of these":                     {"GET", "/api/v1/componentstatuses"},
		"a token of one's own":             {"POST", "/api/v1/namespaces/n/secrets"},
		"tokens for Pods":                  {"PATCH", "/api/v1/namespaces/n/serviceaccounts/default"},
		"an address in Endpoints":          {"POST", "/api/v1/namespaces/n/endpoints"},
		"an address in an EndpointSlice":   {"POST", "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices"},
		"an address in a Service's status": {"PUT", "/api/v1/namespaces/n/services/s/status"},
		"an address in a Pod's status":     {"PATCH", "/api/v1/namespaces/n/pods/p/status"},
		"two thousand million replicas":    {"POST", "/apis/apps/v1/namespaces/n/statefulsets"},
		"a Pod on each node":               {"POST", "/apis/apps/v1/namespaces/n/daemonsets"},
		"what others see of a Deployment":  {"PUT", "/apis/apps/v1/namespaces/n/deployments/d/status"},
		"other addresses of Services":      {"POST", "/apis/networking.k8s.io/v1/servicecidrs"},
		"the address of a Service":         {"DELETE", "/apis/networking.k8s.io/v1/ipaddresses/10.96.0.1"},
		"a claim on a folder of the node":  {"POST", "/api/v1/namespaces/n/persistentvolumeclaims"},
		"the system's namespace":           {"POST", "/apis/apps/v1/namespaces/kube-system/daemonsets"},
		"a namespace with another meaning": {"PATCH", "/api/v1/namespaces/n"},
		"a folder of the node":             {"POST", "/api/v1/persistentvolumes"},
		"a path with dots":                 {"GET", "/healthz/../api/v1/nodes/n/proxy/"},
		"a path with two slashes":          {"GET", "/healthz//api/v1/nodes/n/proxy/"},
		"a path in disguise":               {"GET", "/api/v1/namespaces/n/pods/p%2Flog"},
		"something that is no resource":    {"POST", "/logs"},
		"another method":                   {"CONNECT", "/api/v1/pods"},
	} {
		if refusal(t, httptest.NewRequest(tc.method, tc.path, nil)) == "" {
			t.Errorf("%s is open: %s %s", name, tc.method, tc.path)
		}
	}
}

func TestNobodyAsksAsSomebodyElse(t *testing.T) {
	for _, header := range []string{"Impersonate-User", "impersonate-group", "Impersonate-Extra-Scopes", "Upgrade"} {
		req := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
		req.Header.Set(header, "system:masters")
		if refusal(t, req) == "" {
			t.Errorf("%s passes", header)
		}
	}
}
