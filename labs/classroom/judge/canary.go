package judge

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/sandbox"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// closeLimit is how long a network plugin may take to learn of a new Pod.
	closeLimit = 10 * time.Second
	// closePeriod is the time from one try to the next.
	closePeriod = 500 * time.Millisecond
)

// closed tries whether NetworkPolicies are enforced: where they are not, a program in the sandbox reaches this Pod, which listens
// for that, the API server, its own node, or others. It tries until nothing is reached, or closeLimit is over.
func (s *claimed) closed(ctx context.Context) error {
	for begun := time.Now(); ; {
		switch reached, err := s.reached(ctx); {
		case err != nil || len(reached) == 0:
			return err
		case time.Since(begun) > closeLimit:
			return &clusters.Problem{
				What: "NetworkPolicies are not enforced in this cluster: code in a sandbox reaches " + strings.Join(reached, ", "),
				Fix:  "a network plugin that enforces them, also for what goes to the Pod's own node, such as Calico or Cilium; code of strangers is judged nowhere else",
			}
		}
		select {
		case <-time.After(closePeriod):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reached is what somebody in the sandbox reaches who should not.
func (s *claimed) reached(ctx context.Context) ([]string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(os.Getenv(hosted.PodIPEnv), "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for the canary: %w", err)
	}
	defer l.Close()
	home := filepath.Join(s.scratch, "canary")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	targets := []string{
		l.Addr().String(), net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")),
		"169.254.169.254:80", "1.1.1.1:443", "[2606:4700:4700::1111]:443",
		"[$" + sandbox.NodeEnv + "]:10250", // the kubelet of its own node, which a policy need not forbid
	}
	// A program has no IPv6, and a policy is tried in whatever way the cluster has.
	cmd, err := process.Runner{Launcher: s.launcher}.Tool(ctx, process.Job{
		Args: append([]string{s.pods.Shim, "reach"}, targets...), Dir: home, Writes: home,
	})
	if err != nil {
		return nil, err
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		return nil, &clusters.Problem{
			What: "what a sandbox reaches cannot be tried: it was lost, or is older than the judge's image",
			Fix:  "the same command again, or bin/classroom hosted install", Err: fmt.Errorf("%w: %s", err, bytes.TrimSpace(said)),
		}
	}
	return strings.Fields(string(said)), nil
}
