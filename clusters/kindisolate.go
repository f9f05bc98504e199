package clusters

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ PodIsolator = (*Kind)(nil)

// isolateScript gets the addresses of the Pods that stay as they are. Both CNI plugins in use, kind's and that of our
// node image, give each Pod a veth interface on its node. The table mangle comes before everything that kube-proxy does,
// and kube-proxy leaves it alone. IPv6 has no Pod networks here, but an interface may have an address of its link.
const isolateScript = `set -eu
all=iptables
if [ -e /proc/net/if_inet6 ]; then all="iptables ip6tables"; fi
for tables in $all; do
	$tables -w -t mangle -N LAB-PODS
	$tables -w -t mangle -A LAB-PODS -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
	for address in "$@"; do
		interface=$(ip -o route get "$address" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
		$tables -w -t mangle -A LAB-PODS -i "$interface" -j RETURN
	done
	$tables -w -t mangle -A LAB-PODS -j DROP
	$tables -w -t mangle -I PREROUTING -i veth+ -j LAB-PODS
done`

// IsolatePods sets rules in the network of every node.
func (k *Kind) IsolatePods(ctx context.Context, name string) error {
	list, err := k.existing(ctx, name)
	if err != nil {
		return err
	}
	client, err := connect(k.Kubeconfig(name))
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return problem(err, FixCluster, "cannot list the Pods of cluster %s", name)
	}
	command := []string{"-c", isolateScript, "sh"}
	for _, pod := range pods.Items {
		if pod.Status.PodIP != "" && !pod.Spec.HostNetwork {
			command = append(command, pod.Status.PodIP)
		}
	}
	for _, node := range list {
		if err := node.CommandContext(ctx, "sh", command...).Run(); err != nil {
			return problem(describe(err), FixCluster, "cannot isolate the Pods of node %s", node)
		}
	}
	return nil
}
