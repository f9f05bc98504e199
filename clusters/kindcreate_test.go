package clusters

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The cluster beyond what the kernel grants boots. Only the logs of what ends in it again and again tell why.
func TestTooFewInotifyInstancesAreNamed(t *testing.T) {
	notReady := &Problem{What: "cluster is not ready after 2m0s", Fix: "make doctor", Err: errors.New("CoreDNS has 0 of 1 Pods available")}
	for name, c := range map[string]struct{ log, says, fix string }{
		"kube-proxy ends over them": {
			`E1123 21:40:12.1 1 run.go:72] "command failed" err="failed complete: too many open files"`,
			"too few inotify instances for so many clusters: \"too many open files\" in node/kube-proxy.log: cluster is not ready after 2m0s: CoreDNS has", "make setup",
		},
		"something else": {"I1123 all is well", "cluster is not ready after 2m0s: CoreDNS has 0 of 1 Pods available", "make doctor"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "node"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "node", "kube-proxy.log"), []byte(c.log+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			p, ok := errors.AsType[*Problem](withShortage(dir, notReady))
			if !ok || !strings.Contains(p.Error(), c.says) || p.Fix != c.fix || strings.Count(p.Error(), "fix:") != 1 {
				t.Errorf("%v, want %q and %q", p, c.says, c.fix)
			}
		})
	}
}
