package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// healthTimeout bounds the questions to the API server. One that works answers
	// within milliseconds; one that needs longer than this cannot judge anybody.
	healthTimeout = 10 * time.Second
	// enoughDisk is what a node needs in bytes to go on: the kubelets of kind
	// never report pressure, so the writes of etcd and of Pods would just fail.
	enoughDisk = 256 << 20
)

// Healthy says whether what a cluster shows can be trusted: its node containers
// run and have disk space, its API server is ready, its nodes are Ready and not
// short of anything. If not, the error is a *Problem that names the cause.
func Healthy(ctx context.Context, p Provider, c *Cluster) error {
	if inspector, ok := p.(NodeInspector); ok {
		if err := healthyMachines(ctx, inspector, c); err != nil {
			return err
		}
	}
	return healthyAPI(ctx, c)
}

func healthyMachines(ctx context.Context, inspector NodeInspector, c *Cluster) error {
	nodes, err := inspector.Nodes(ctx, c.Name)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return problem(err, mendEngine, "cannot look at the nodes of cluster %s", c.Name)
	}
	if len(nodes) < c.Nodes {
		return &Problem{
			What: fmt.Sprintf("cluster %s has %d of its %d nodes left", c.Name, len(nodes), c.Nodes),
			Mend: mendCluster,
		}
	}
	for _, node := range nodes {
		if !node.Running {
			return &Problem{What: fmt.Sprintf("node %s is %s", node.Name, node.State), Mend: mendCluster}
		}
		if node.FreeDisk > 0 && node.FreeDisk < enoughDisk {
			return &Problem{
				What: fmt.Sprintf("node %s has %d MB of disk space left", node.Name, node.FreeDisk>>20),
				Mend: "make doctor",
			}
		}
	}
	return nil
}

// mendCluster takes a broken cluster away; the next command makes a new one.
const mendCluster = "make down"

func healthyAPI(ctx context.Context, c *Cluster) error {
	config, err := RESTConfig(c.Kubeconfig)
	if err != nil {
		return problem(err, mendCluster, "cluster %s cannot be reached", c.Name)
	}
	config.Timeout = healthTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return problem(err, mendCluster, "cluster %s cannot be reached", c.Name)
	}
	if err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return problem(err, mendCluster, "the API server of cluster %s is not ready", c.Name)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return problem(err, mendCluster, "cluster %s does not tell its nodes", c.Name)
	}
	if unready := unreadyNodes(nodes.Items); len(unready) > 0 {
		return problem(errors.New(strings.Join(unready, "; ")), "make doctor", "cluster %s is not healthy", c.Name)
	}
	return nil
}
