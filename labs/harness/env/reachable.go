package env

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// triedService is what the API server's proxy says when it did not get an answer in HTTP.
	triedService = "error trying to reach service"
	// refusedConnection is what a dialer says when nobody listens at an address.
	refusedConnection = "connection refused"
)

// Reachable wants somebody to listen on a port of the Pod's own address. A port-forward ends inside the Pod, where
// one that listens on 127.0.0.1 answers as well; the API server's proxy comes from outside. It speaks HTTP,
// which memcached does not: any answer but a refused connection will do. What the proxy met is in the body of
// its answer, and not always in the error.
func Reachable(ctx context.Context, pod corev1.Pod, port int32) error {
	clientset, err := kubernetes.NewForConfig(current.adminConfig)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	answer, err := clientset.CoreV1().Pods(pod.Namespace).ProxyGet("", pod.Name, strconv.Itoa(int(port)), "/", nil).DoRaw(ctx)
	if err == nil {
		return nil
	}
	switch text := err.Error() + string(answer); {
	case !strings.Contains(text, triedService):
		return fmt.Errorf("reach Pod %s by way of the API server: %w", pod.Name, err)
	case !strings.Contains(text, refusedConnection):
		return nil // no HTTP, and an answer
	}
	return finding.New("listens-locally", fmt.Sprintf("memcached can be reached on port %d of Pod %s", port, pod.Name),
		"it answers inside of the Pod, and whoever comes from outside gets: %s", refusedConnection)
}
