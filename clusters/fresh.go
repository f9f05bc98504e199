package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// freshTimeout bounds the look at a cluster that is about to be handed out.
const freshTimeout = 5 * time.Second

// systemNamespaces are those that a new cluster has. local-path-storage is kind's.
var systemNamespaces = []string{
	metav1.NamespaceDefault, "kube-node-lease", metav1.NamespacePublic, metav1.NamespaceSystem, "local-path-storage",
}

// Fresh is nil when the cluster answers and nobody has left anything in it: no definition of a custom
// resource, no namespace of somebody's own and no Pod in the default one.
func Fresh(ctx context.Context, c *Cluster) error {
	config, err := RESTConfig(c.Kubeconfig)
	if err != nil {
		return problem(err, MendCluster, "cluster %s cannot be reached", c.Name)
	}
	config.Timeout, config.QPS = freshTimeout, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return problem(err, MendCluster, "cluster %s cannot be reached", c.Name)
	}
	left, err := leftovers(ctx, client)
	if err != nil {
		return problem(err, MendCluster, "cluster %s does not tell what is in it", c.Name)
	}
	if left != "" {
		return fmt.Errorf("cluster %s is not fresh: it has %s", c.Name, left)
	}
	return nil
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
