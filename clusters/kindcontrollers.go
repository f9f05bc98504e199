package clusters

import (
	"context"

	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// ControllerRestarter is a provider that can start the controller manager of a cluster anew. It looks for new
// kinds every 30 s only (restMapper.Reset in kube-controller-manager's start of its controllers), and until
// then its garbage collector does not know whose owner a custom resource is. A new one knows at once.
type ControllerRestarter interface {
	// RestartControllers ends the controller manager and does not wait for its successor.
	RestartControllers(ctx context.Context, name string) error
}

// endControllers ends the processes of that name, which /proc cuts to 15 letters. Not every node image
// has a pkill.
const endControllers = `for p in /proc/[0-9]*; do if [ "$(cat "$p/comm" 2>/dev/null)" = kube-controller ]; then kill "${p#/proc/}"; fi; done`

// RestartControllers ends the controller manager on every control-plane node. The kubelet starts it again.
func (k *Kind) RestartControllers(ctx context.Context, name string) error {
	list, err := k.nodes(ctx, name)
	if err != nil {
		return problem(describe(err), mendEngine, "cannot list the nodes of cluster %s", name)
	}
	planes, err := nodeutils.ControlPlaneNodes(list)
	if err != nil {
		return problem(describe(err), mendEngine, "cannot find the control plane of cluster %s", name)
	}
	for _, node := range planes {
		if err := node.CommandContext(ctx, "sh", "-c", endControllers).Run(); err != nil {
			return problem(describe(err), mendEngine, "cannot restart the controllers of cluster %s", name)
		}
	}
	return nil
}
