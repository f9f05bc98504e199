package judge

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/example/operator-lab/clusters"
)

const (
	// closeLimit is how long a network plugin may take to learn of a new Pod.
	closeLimit = 10 * time.Second
	// dialLimit is how long an address may take to answer.
	dialLimit = time.Second
)

// requireClosed is an error where this Pod reaches anything: NetworkPolicies are not enforced then, and no code is judged that
// nobody trusts. It tries until nothing answers, or closeLimit is over.
func requireClosed(ctx context.Context, node string) error {
	addresses := []string{
		net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")),
		net.JoinHostPort(node, "10250"), // the kubelet
		"169.254.169.254:80",            // what clouds tell of a machine
		"1.1.1.1:443", "[2606:4700:4700::1111]:443",
	}
	for begun := time.Now(); ; {
		reached := reach(ctx, addresses)
		switch {
		case ctx.Err() != nil || len(reached) == 0:
			return ctx.Err()
		case time.Since(begun) > closeLimit:
			return &clusters.Problem{
				What: "NetworkPolicies are not enforced in this cluster: a judge reaches " + strings.Join(reached, ", "),
				Fix:  "a network plugin that enforces them, such as Calico or Cilium, and the policy of docs/hosted.md",
			}
		}
		select {
		case <-time.After(dialLimit / 2):
		case <-ctx.Done():
		}
	}
}

// reach is which of the addresses answer.
func reach(ctx context.Context, addresses []string) (reached []string) {
	var mu sync.Mutex
	var dialing sync.WaitGroup
	for _, address := range addresses {
		dialing.Go(func() {
			conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			conn.Close()
			mu.Lock()
			defer mu.Unlock()
			reached = append(reached, address)
		})
	}
	dialing.Wait()
	slices.Sort(reached)
	return reached
}
