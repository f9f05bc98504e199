//go:build linux

package gradetest

import (
	"context"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// TestNoTokenThatAManagerCanReadOpensTheAPIServer reads all that a manager with the rights of cluster-admin is shown, and
// tries each token in it where the manager must not come: at the API server itself, past the proxy. Without the rule for
// its requests there is one.
func TestNoTokenThatAManagerCanReadOpensTheAPIServer(t *testing.T) {
	config := startAPI(t)
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	token := adminToken(t, admin)
	if !accepts(t, config, token) {
		t.Fatal("the API server does not accept the manager's own token")
	}
	for name, tc := range map[string]struct {
		rule apiproxy.Rule
		open bool
	}{
		"without the rule": {nil, true},
		"with it":          {apiproxy.AdmissionRule, false},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, err := apiproxy.Start(config, token, tc.rule, apiproxy.NamespaceFilter{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := proxy.Stop(); err != nil {
					t.Error(err)
				}
			}()
			manager := &rest.Config{Host: proxy.URL(), BearerToken: proxy.Token(), TLSClientConfig: rest.TLSClientConfig{CAData: proxy.CA()}, QPS: -1}
			if accepts(t, config, proxy.Token()) {
				t.Error("the API server accepts what stands in the manager's kubeconfig")
			}
			open := false
			for _, found := range tokens(readAll(t, manager)) {
				open = open || accepts(t, config, found)
			}
			if open != tc.open {
				t.Errorf("a token that the manager can read is accepted: %v, want %v", open, tc.open)
			}
		})
	}
}

// adminToken is one of an account with all rights, which also has one in a Secret.
func adminToken(t *testing.T, admin kubernetes.Interface) string {
	t.Helper()
	const name = "manager"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: name}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
	}
	core := admin.CoreV1()
	_, err := core.ServiceAccounts(metav1.NamespaceDefault).Create(t.Context(), account, metav1.CreateOptions{})
	if err == nil {
		_, err = core.Secrets(metav1.NamespaceDefault).Create(t.Context(), secret, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		filled, err := core.Secrets(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		return err == nil && len(filled.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
	if err != nil {
		t.Fatalf("the Secret has no token: %v", err)
	}
	request, err := core.ServiceAccounts(metav1.NamespaceDefault).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// readAll is what the manager is shown: each kind of object that can be listed, and what is no resource.
func readAll(t *testing.T, manager *rest.Config) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(manager)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := client.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/", "/version", "/metrics", "/logs", "/debug/pprof", "/configz", "/flagz", "/statusz"}
	for _, kind := range kinds {
		prefix := "/apis/" + kind.GroupVersion
		if kind.GroupVersion == "v1" {
			prefix = "/api/v1"
		}
		for _, resource := range kind.APIResources {
			paths = append(paths, prefix+"/"+resource.Name)
		}
	}
	var shown strings.Builder
	for _, path := range paths {
		answer, _ := client.RESTClient().Get().AbsPath(path).DoRaw(t.Context()) // what is refused has nothing in it
		shown.Write(answer)
	}
	if !strings.Contains(shown.String(), "kube-system") {
		t.Errorf("the manager is shown nothing: %.200s", shown.String())
	}
	return shown.String()
}

var (
	tokenForm  = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+|\b[a-z0-9]{6}\.[a-z0-9]{16}\b`) // of ServiceAccounts, and of kubeadm
	quotedText = regexp.MustCompile(`"[A-Za-z0-9+/]{16,}={0,2}"`)
)

// tokens are those in a text, and in what it has in base64.
func tokens(text string) []string {
	found := tokenForm.FindAllString(text, -1)
	for _, quoted := range quotedText.FindAllString(text, -1) {
		if decoded, err := base64.StdEncoding.DecodeString(strings.Trim(quoted, `"`)); err == nil {
			found = append(found, tokenForm.FindAllString(string(decoded), -1)...)
		}
	}
	return found
}

// accepts says whether the API server knows whose token that is.
func accepts(t *testing.T, config *rest.Config, token string) bool {
	t.Helper()
	direct := rest.AnonymousClientConfig(config)
	direct.BearerToken = token
	transport, err := rest.TransportFor(direct)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/api/v1/namespaces/default", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode != http.StatusUnauthorized
}
