package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// freshTimeout bounds the look at a cluster that is about to be handed out.
const freshTimeout = 5 * time.Second

// freshPoll is how often to ask meanwhile: nearly always the first answer is the last.
const freshPoll = 50 * time.Millisecond

// systemNamespaces are those that a new cluster has. local-path-storage is kind's.
var systemNamespaces = []string{
	metav1.NamespaceDefault, "kube-node-lease", metav1.NamespacePublic, metav1.NamespaceSystem, "local-path-storage",
}

// Fresh is nil when the cluster's nodes are Ready and nobody has left anything in it: no definition of a custom
// resource, no namespace of somebody's own and no Pod in the default one.
func Fresh(ctx context.Context, c *Cluster) error {
	client, err := c.client(freshTimeout)
	if err != nil {
		return err
	}
	if err := awaitNodes(ctx, client); err != nil {
		return problem(err, "make doctor", "cluster %s is not ready any more", c.Name)
	}
	left, err := leftovers(ctx, client)
	if err != nil {
		return problem(err, FixCluster, "cluster %s does not tell what is in it", c.Name)
	}
	if left != "" {
		return fmt.Errorf("cluster %s is not fresh: it has %s", c.Name, left)
	}
	return nil
}

// awaitNodes waits until every node is Ready. One that was paused may take a second to find that it still is.
func awaitNodes(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	var unready []string
	err := wait.PollUntilContextCancel(ctx, freshPoll, true, func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		unready = unreadyNodes(nodes.Items)
		return len(unready) == 0, nil
	})
	if err != nil && len(unready) > 0 {
		return errors.New(strings.Join(unready, "; "))
	}
	return err
}

// leftovers names something that a new cluster does not have, "" when there is nothing.
func leftovers(ctx context.Context, client kubernetes.Interface) (string, error) {
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, ns := range namespaces.Items {
		if !slices.Contains(systemNamespaces, ns.Name) {
			return "the namespace " + ns.Name, nil
		}
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	for _, pod := range pods.Items {
		return "the Pod " + pod.Name, nil
	}
	return leftDefinition(ctx, client)
}

// leftDefinition names a definition of a custom resource, "" when there is none.
func leftDefinition(ctx context.Context, client kubernetes.Interface) (string, error) {
	data, err := client.CoreV1().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		Param("limit", "1").SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var definitions metav1.PartialObjectMetadataList
	if err := json.Unmarshal(data, &definitions); err != nil {
		return "", err
	}
	for _, definition := range definitions.Items {
		return "the definition " + definition.Name, nil
	}
	return "", nil
}
