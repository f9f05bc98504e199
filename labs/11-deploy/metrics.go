package deploy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// metric is the one of the contract. The library of Prometheus sorts its labels.
const metric = "memcached_available_replicas"

var (
	series = regexp.MustCompile(`(?m)^` + metric + `\b(.*) (\S+)$`)
	labels = regexp.MustCompile(`^\{name="([^"]+)",namespace="([^"]+)"\}$`)
)

// haveSeries wants metrics with series for a Memcached that have these values: one, or none when the Memcached is gone.
func haveSeries(m env.Memcached, values ...string) *match.Matcher {
	return match.Make(func(text string) error {
		if !strings.Contains(text, "# TYPE "+metric) {
			return finding.New("no-metric", "a metric "+metric, "none of that name")
		}
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		for _, p := range problems {
			if p.Metric == metric {
				return finding.New("lint", "a metric that promlint accepts", "%s: %s", p.Metric, p.Text)
			}
		}
		var have []string
		for _, line := range series.FindAllStringSubmatch(text, -1) {
			l := labels.FindStringSubmatch(line[1])
			if l == nil || !strings.Contains(text, "# TYPE "+metric+" gauge") {
				return finding.New("other-labels", "a gauge with the labels name and namespace", "%s", line[0])
			}
			if l[1] == m.Name && l[2] == m.Namespace {
				have = append(have, line[2])
			}
		}
		switch {
		case err != nil || slices.Equal(have, values):
			return err
		case len(values) == 0:
			return finding.New("series-left", "no series for the Memcached "+m.String()+", which is deleted", "one with the value %s", have)
		}
		return finding.New("other-value", fmt.Sprintf("%s is %s for %s", metric, values, m), "it is %s", have)
	})
}

// haveStatus wants an answer of [get] with a status.
func haveStatus(code int, to, cause string) *match.Matcher {
	return match.Make(func(answer string) error {
		if status, _, _ := strings.Cut(strings.TrimPrefix(answer, "# "), "\n"); !strings.HasPrefix(status, fmt.Sprint(code)) {
			return finding.New(cause, fmt.Sprintf("%d %s", code, to), "%s", status)
		}
		return nil
	})
}

// get asks managers in the cluster for their metrics, with a token or without, until one answers with series of the metric: the leader.
// It returns that answer, or else the last: the status as a comment of Prometheus's text format, and the text.
func get(ctx context.Context, token string, pods []corev1.Pod) (answer string, err error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the certificate is the manager's own
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, pod := range pods {
		port, err := env.MetricsPort(ctx, pod.Namespace)
		if err != nil {
			return "", err
		}
		address, err := env.Forward(ctx, pod, port)
		if err != nil {
			return "", err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
		if err != nil {
			return "", err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return "", finding.New("no-answer", "metrics over HTTPS", "%v", err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return "", err
		}
		answer = "# " + response.Status + "\n" + string(text)
		if series.MatchString(answer) {
			break
		}
	}
	return answer, nil
}

// account makes a ServiceAccount, and returns its token. allowed may do everything.
func account(ctx context.Context, namespace string, allowed bool) (token string) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: env.RandomName()}}
	Expect(env.Admin().Create(ctx, account)).To(Succeed())
	if allowed {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
		}
		Expect(env.Admin().Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error { return client.IgnoreNotFound(env.Admin().Delete(ctx, binding)) })
		Eventually(ctx, func(ctx context.Context) (bool, error) { // else the manager remembers the first answer, for half a minute
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:                  "system:serviceaccount:" + namespace + ":" + account.Name,
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
			}}
			err := env.Admin().Create(ctx, review)
			return review.Status.Allowed, err
		}).Should(BeTrue())
	}
	request := &authenticationv1.TokenRequest{}
	Expect(env.Admin().SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}
