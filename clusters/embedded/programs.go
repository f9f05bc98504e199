package embedded

import (
	"fmt"
	"net"
	"strconv"
)

// The names of the programs, which are also those of their components.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
)

// Components are the names of the components that a control plane is made of, which are those of its programs.
func Components() []string { return []string{etcd, apiServer, controllerManager, scheduler, kwok} }

const (
	// etcdData is the folder of etcd's data.
	etcdData = "etcd"
	// etcdSocket is where etcd listens: in a folder that is closed to others, because
	// it asks nobody who they are. The programs work in that folder, so the path is
	// short enough for a socket wherever the checkout is.
	etcdSocket = "etcd.sock"
	// etcdPeerSocket is where it would listen to other members.
	etcdPeerSocket = "peer.sock"
	// serviceCIDR and podCIDR are kubeadm's and kind's.
	serviceCIDR = "10.96.0.0/16"
	podCIDR     = "10.244.0.0/16"
	// serviceIP is the first address of serviceCIDR, that of the Service kubernetes.
	serviceIP = "10.96.0.1"
	// nodeIP is the address of the nodes, which nobody can reach: they are played.
	nodeIP = "10.0.0.1"
	// stagesFile tells kwok what becomes of nodes and Pods.
	stagesFile = "stages.yaml"
	// egressFile tells the API server of a cluster for others whom it may call.
	egressFile = "egress.yaml"
)

// loopback is where everything listens, unless the API server is asked to listen elsewhere.
const loopback = "127.0.0.1"

// newPlan says how to run the programs, with the API server on that address, for whom [clusters.Spec.APIServerAddress] says.
// Paths are relative to the control plane's folder, in which the programs work.
func newPlan(paths map[string]string, address string, port int, token string) plan {
	api := net.JoinHostPort(address, strconv.Itoa(port))
	apiServerEnv := memory(400)
	if address != loopback {
		apiServerEnv = append(apiServerEnv, proxy(api)...)
	}
	serves := "https://" + api + "/version"
	return plan{Token: token, Programs: []program{
		{Name: etcd, Path: paths[etcd], Args: etcdArgs()},
		{Name: apiServer, Path: paths[apiServer], Args: apiServerArgs(address, port), After: etcdSocket, Env: apiServerEnv},
		// It does nothing before /healthz is green, for which it asks once a second.
		{Name: controllerManager, Path: paths[controllerManager], Args: controllerManagerArgs(), After: "https://" + api + "/healthz", Env: memory(200)},
		{Name: scheduler, Path: paths[scheduler], Args: schedulerArgs(), After: serves, Env: memory(150)},
		{Name: kwok, Path: paths[kwok], Args: kwokArgs(), After: serves, Env: memory(150)},
	}}
}

// memory lets a program collect its garbage when it uses that many MiB, and not
// before: most of what a start allocates stays.
func memory(mebibytes int) []string {
	return []string{"GOGC=off", fmt.Sprintf("GOMEMLIMIT=%dMiB", mebibytes)}
}

// proxy sends what an API server calls past its egress to a port that nobody can listen on. A webhook at
// https://kubernetes.default.svc is such a call: the DNS of this machine would say who gets it (authentication.go of
// k8s.io/apiserver/pkg/util/webhook, 1.36). The API server itself is called without it; so is loopback, always, by net/http.
func proxy(itself string) []string {
	return []string{"HTTPS_PROXY=http://127.0.0.1:0", "HTTP_PROXY=http://127.0.0.1:0", "NO_PROXY=" + itself}
}

func etcdArgs() []string {
	return []string{
		"--data-dir=" + etcdData,
		"--listen-client-urls=unix://" + etcdSocket,
		// Nobody follows it, but it has to look like an address.
		"--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=unix://" + etcdPeerSocket, // there are no peers, and who could play one could write anything
		// The data do not survive the machine, so nothing is gained by waiting for the disk.
		"--unsafe-no-fsync",
		// One member waits for its own election: 10 to 50 ms instead of 0.1 to 1 s.
		"--heartbeat-interval=10",
		"--election-timeout=50",
		"--quota-backend-bytes=268435456", // a cluster of a lab takes 20 MB
		// What is written stays on disk twice, and the quota does not count its log, of 10,000 writes by default.
		"--snapshot-count=100", "--snapshot-catchup-entries=100", "--max-wals=1",
		"--log-level=warn",
	}
}

// apiServerArgs are kubeadm's, as far as they are not about a network of nodes. What checks rely on stands in
// ../kind.yaml, too.
func apiServerArgs(address string, port int) []string {
	args := []string{
		"--bind-address=" + address,
		fmt.Sprintf("--secure-port=%d", port),
		// The address in the Service kubernetes, which may not be a loopback one.
		"--advertise-address=" + nodeIP,
		"--etcd-servers=unix:" + etcdSocket,
		"--allow-privileged=true",
		"--profiling=false", // whoever is admin could have everything logged
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		"--token-auth-file=" + tokensFile,
		"--client-ca-file=" + certificateFile,
		"--tls-cert-file=" + certificateFile,
		"--tls-private-key-file=" + keyFile,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + keyFile,
		"--service-account-signing-key-file=" + keyFile,
		"--service-cluster-ip-range=" + serviceCIDR,
	}
	if address != loopback {
		args = append(args, "--egress-selector-config-file="+egressFile,
			"--kubelet-preferred-address-types=", // none, else it asks the DNS for names of nodes before the egress
			// Whoever asks for these has it call 127.0.0.1:10257 and 10259 past the egress, and follow where they lead
			// (validator.go of Kubernetes' pkg/registry/core/componentstatus, 1.36).
			"--runtime-config=/v1/componentstatuses=false",
			"--anonymous-auth=false")
	}
	return args
}

// egress sends what an API server calls through a proxy that is not there.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: &nobody
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: nobody.sock}}
- name: controlplane
  connection: *nobody
`

func controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + kubeconfigFile,
		"--secure-port=0", // nobody asks it
		// There are no volumes. Deleting one of the kind hostPath would delete a folder of this machine.
		"--controllers=*,bootstrap-signer-controller,token-cleaner-controller,-persistentvolume-binder-controller," +
			"-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller",
		"--root-ca-file=" + certificateFile,
		"--cluster-signing-cert-file=" + certificateFile,
		"--cluster-signing-key-file=" + keyFile,
		"--service-account-private-key-file=" + keyFile,
		// There is nobody to elect a leader among.
		"--leader-elect=false",
		// A laptop that slept did not lose its node.
		"--node-monitor-grace-period=24h",
		// By default the controllers share 20 requests a second, and Pods that a quota refuses use them up.
		"--kube-api-qps=200", "--kube-api-burst=400",
		// An autoscaler looks after its target every 15 seconds by default, and at a new one not before.
		"--horizontal-pod-autoscaler-sync-period=2s",
	}
}

func schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + kubeconfigFile,
		"--secure-port=0",
		"--leader-elect=false",
	}
}

func kwokArgs() []string {
	return []string{
		"--kubeconfig=" + kubeconfigFile,
		"--config=" + stagesFile,
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
		"--cidr=" + podCIDR,
		"--node-ip=" + nodeIP,
	}
}
