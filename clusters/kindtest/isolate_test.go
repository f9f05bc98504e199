package kindtest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
)

const (
	dialImage = "operator-lab.local/dial:test"
	dialPort  = "8080"
)

// TestIsolatedPodsReachNothing asks from inside of a Pod, first without the rules: then everything answers.
func TestIsolatedPodsReachNothing(t *testing.T) {
	t.Parallel()
	kind, _ := newKind(t)
	name := clusters.NewName("isolate")
	t.Cleanup(func() {
		if err := kind.Delete(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
	cluster, err := kind.Create(t.Context(), name, clusters.Spec{NodeImage: nodeImage(t, kind.Engine())})
	if err != nil {
		t.Fatal(err)
	}
	archive := dialArchive(t)
	if err := kind.LoadImageArchive(t.Context(), name, archive); err != nil {
		t.Fatal(err)
	}
	config, err := clusters.RESTConfig(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	// Docker gives the interfaces of Pods no IPv6 at the end of their node; other engines may.
	node6 := exec.CommandContext(t.Context(), kind.Engine(), "exec", name+"-control-plane", "sysctl", "-w", "net.ipv6.conf.default.disable_ipv6=0")
	if out, err := node6.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	asker, other := runDial(t, client, "asker", false), runDial(t, client, "other", false)
	node := runDial(t, client, "node", true)
	addresses := []string{
		"kubernetes.default.svc.cluster.local:443",
		serviceAddress(t, client, "kube-dns") + ":53",
		asker.Status.HostIP + ":6443",  // the API server
		asker.Status.HostIP + ":10250", // the kubelet
		listenHere(t),                  // the machine that the node runs on
		other.Status.PodIP + ":" + dialPort,
		linkOf(t, client, node, asker), // the node, by IPv6
	}
	if diff := cmp.Diff(addresses, reached(t, client, asker, addresses)); diff != "" {
		t.Errorf("a Pod without rules (-want +got):\n%s", diff)
	}
	if err := kind.IsolatePods(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	// That it becomes Ready shows that the kubelet reaches it, and that it can be asked, that the API server does.
	isolated := runDial(t, client, "isolated", false)
	addresses[len(addresses)-1] = linkOf(t, client, node, isolated)
	if got := reached(t, client, isolated, addresses); len(got) > 0 {
		t.Errorf("an isolated Pod reaches %v", got)
	}
	addresses[len(addresses)-1] = linkOf(t, client, node, asker)
	if diff := cmp.Diff(addresses, reached(t, client, asker, addresses)); diff != "" {
		t.Errorf("a Pod that was there before (-want +got):\n%s", diff)
	}
	if got := reached(t, client, asker, []string{isolated.Status.PodIP + ":" + dialPort}); len(got) != 1 {
		t.Error("an isolated Pod does not answer one that is not")
	}
	if err := clusters.Healthy(t.Context(), kind, cluster); err != nil {
		t.Error(err)
	}
	// Nothing in its spec asks for that: it is the kubelet's default (kind.yaml).
	if status := kernelSays(t, client, isolated, "/proc/self/status"); !strings.Contains(status, "\nSeccomp:\t2\n") {
		t.Errorf("the system calls of a Pod are not filtered:\n%s", status)
	}
	// The same of how many threads it may have, which is the limit of its cgroup: the name has dashes, or underscores.
	pods := exec.CommandContext(t.Context(), kind.Engine(), "exec", name+"-control-plane", "find", "/sys/fs/cgroup",
		"-path", "*pod"+strings.ReplaceAll(string(isolated.UID), "-", "?")+"*", "-prune", "-exec", "cat", "{}/pids.max", ";")
	if out, _ := pods.CombinedOutput(); !strings.Contains(string(out), "256\n") {
		t.Errorf("a Pod has no limit of threads: %s", out)
	}
}

func dialArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "dial"), filepath.Join(dir, "dial.tar")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./dial")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build dial: %v\n%s", err, out)
	}
	if err := clusters.WriteProgramImage(archive, dialImage, program); err != nil {
		t.Fatal(err)
	}
	return archive
}

// runDial starts a Pod, or one in the network of its node, and returns when it is Ready.
func runDial(t *testing.T, client kubernetes.Interface, name string, ofNode bool) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{HostNetwork: ofNode, Containers: []corev1.Container{{
			Name: "dial", Image: dialImage, Args: []string{dialPort},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
				TCPSocket: &corev1.TCPSocketAction{Port: intstr.Parse(dialPort)},
			}},
		}}},
	}
	if _, err := client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := clusters.WaitForPod(ctx, client, pod.Namespace, name, func(now *corev1.Pod) bool {
		pod = now
		return slices.ContainsFunc(now.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Ready })
	})
	if err != nil {
		t.Fatalf("Pod %s does not become Ready: %v: %+v", name, err, pod.Status)
	}
	return pod
}

// reached are those of the addresses that a Pod can connect to.
func reached(t *testing.T, client kubernetes.Interface, pod *corev1.Pod, addresses []string) []string {
	t.Helper()
	asked := client.CoreV1().Pods(pod.Namespace).ProxyGet("", pod.Name, dialPort, "/", map[string]string{"to": strings.Join(addresses, ",")})
	answer, err := asked.DoRaw(t.Context())
	if err != nil {
		t.Fatalf("ask Pod %s: %v", pod.Name, err)
	}
	return strings.Fields(string(answer))
}

// kernelSays is a file below /proc or /sys, as a Pod reads it.
func kernelSays(t *testing.T, client kubernetes.Interface, pod *corev1.Pod, file string) string {
	t.Helper()
	data, err := client.CoreV1().Pods(pod.Namespace).ProxyGet("", pod.Name, dialPort, file, nil).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("ask Pod %s for %s: %v", pod.Name, file, err)
	}
	return string(data)
}

// linkAddress is the IPv6 address that a network device has without anybody's doing. A new one may not be used yet: for a
// second, others are asked whether it is theirs.
func linkAddress(t *testing.T, client kubernetes.Interface, pod *corev1.Pod, device string) (address netip.Addr, usable bool) {
	t.Helper()
	const tentative = 0x40 // IFA_F_TENTATIVE in linux/if_addr.h
	for line := range strings.Lines(kernelSays(t, client, pod, "/proc/net/if_inet6")) {
		var number, index, flags uint64
		var raw []byte
		if _, err := fmt.Sscanf(line, "%32x %x %x %x %x", &raw, &index, &number, &number, &flags); err != nil {
			t.Fatalf("if_inet6 of Pod %s: %q: %v", pod.Name, line, err)
		}
		address, ok := netip.AddrFromSlice(raw)
		if ok && strconv.FormatUint(index, 10) == device && address.IsLinkLocalUnicast() {
			return address, flags&tentative == 0
		}
	}
	return netip.Addr{}, false
}

// linkOf is where the node answers by IPv6, at the other end of a Pod's cable.
func linkOf(t *testing.T, client kubernetes.Interface, node, pod *corev1.Pod) string {
	t.Helper()
	here := strings.TrimSpace(kernelSays(t, client, pod, "/sys/class/net/eth0/ifindex"))
	there := strings.TrimSpace(kernelSays(t, client, pod, "/sys/class/net/eth0/iflink"))
	var address netip.Addr
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(context.Context) (bool, error) {
		_, usable := linkAddress(t, client, pod, here)
		var answers bool
		address, answers = linkAddress(t, client, node, there)
		return usable && answers, nil
	})
	if err != nil {
		t.Fatalf("Pod %s and its node have no IPv6 between them: %v", pod.Name, err)
	}
	return net.JoinHostPort(address.WithZone("eth0").String(), dialPort)
}

func serviceAddress(t *testing.T, client kubernetes.Interface, name string) string {
	t.Helper()
	service, err := client.CoreV1().Services(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return service.Spec.ClusterIP
}

// listenHere is an address of this machine that its nodes reach, and at which somebody answers.
func listenHere(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	// No packet is sent: it says which address would be the sender's.
	conn, err := net.Dial("udp", "192.0.2.1:9")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port)
}
