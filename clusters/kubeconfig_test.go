package clusters_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
)

const ownKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://192.168.1.5:41001", certificate-authority-data: bGFi}}]
users: [{name: lab, user: {token: secret}}]
contexts: [{name: lab, context: {cluster: lab, user: lab}}]
current-context: lab
`

// A kubeconfig from elsewhere must not run programs here, and nobody on the way may read what it sends.
func TestAKubeconfigFromElsewhereOpensOneClusterAndNothingElse(t *testing.T) {
	if err := clusters.CheckKubeconfig([]byte(ownKubeconfig)); err != nil {
		t.Errorf("one that is in order: %v", err)
	}
	for name, tc := range map[string]struct {
		old, new string
		want     error
	}{
		"a program":             {"token: secret", "exec: {command: reboot, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", clusters.ErrNeedsMore},
		"a token in a file":     {"token: secret", "tokenFile: /etc/passwd", clusters.ErrNeedsMore},
		"a key in a file":       {"token: secret", "client-key: /etc/key", clusters.ErrNeedsMore},
		"a CA in a file":        {"certificate-authority-data: bGFi", "certificate-authority: /etc/ca", clusters.ErrNeedsMore},
		"no encryption":         {"https://", "http://", clusters.ErrOpen},
		"no scheme":             {"https://", "", clusters.ErrOpen},
		"any certificate":       {"certificate-authority-data: bGFi", "insecure-skip-tls-verify: true", clusters.ErrOpen},
		"a proxy of somebody's": {"certificate-authority-data: bGFi", `proxy-url: "http://192.168.1.66:8080"`, clusters.ErrOpen},
		"no current context":    {"current-context: lab", "", clusters.ErrNoContext},
		"another cluster":       {"{cluster: lab, user: lab}", "{cluster: own, user: lab}", clusters.ErrNoContext},
		"another user":          {"{cluster: lab, user: lab}", "{cluster: lab, user: own}", clusters.ErrNoContext},
		"no YAML":               {ownKubeconfig, "{", clusters.ErrNoKubeconfig},
	} {
		if err := clusters.CheckKubeconfig([]byte(strings.Replace(ownKubeconfig, tc.old, tc.new, 1))); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}
