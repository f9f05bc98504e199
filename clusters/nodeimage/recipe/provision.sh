#!/bin/bash
# Runs once in the container that becomes the node image, with the archive of all component images on stdin.
set -euo pipefail

mkdir -p /etc/kubernetes/manifests

# A node's systemd starts kubelet and containerd and little else: units that expect hardware would fail or wait.
find /usr/lib/systemd/system/sysinit.target.wants -name systemd-tmpfiles-setup.service -delete
rm -f /etc/systemd/system/*.wants/* /usr/lib/systemd/system/{multi-user,local-fs,basic}.target.wants/* \
	/usr/lib/systemd/system/sockets.target.wants/*{udev,initctl}*
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service # would register formats with the kernel of the whole machine
echo ReadKMsg=no >>/etc/systemd/journald.conf

# With this bound, a host that does not grant CAP_SYS_RESOURCE can start Pods: containerd then asks for no OOM score
# below its own. Where the host grants it, containerd's own is -999, so that the bound excludes nothing.
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml
grep -q 'restrict_oom_score_adj = true' /etc/containerd/config.toml

# On cgroup v1, systemd removes a slice from hierarchies of which it makes no use, and the kubelet, which has just made
# it there for a Pod, finds it gone and tries again ten seconds later. So there, no part of a Pod's cgroups is systemd's.
# The kubelet asks containerd which way it is.
mkdir -p /etc/systemd/system/containerd.service.d
cat >/etc/systemd/system/containerd.service.d/cgroup-v1.conf <<'EOF'
[Service]
ExecStartPre=/bin/sh -c 'test -e /sys/fs/cgroup/cgroup.controllers || sed -i "s/SystemdCgroup = true/SystemdCgroup = false/" /etc/containerd/config.toml'
EOF
grep -q 'SystemdCgroup = true' /etc/containerd/config.toml

# kubeadm has etcd, the API server and the scheduler asked each second whether they are ready, each time over a new
# connection: a fifth of what a cluster does at rest. The kubelet asks besides as soon as one has started.
mkdir -p /etc/systemd/system/kubelet.service.d
cat >/etc/systemd/system/kubelet.service.d/20-probes.conf <<'EOF'
[Service]
ExecStartPre=-/bin/sh -c 'sed -i "s/periodSeconds: 1$/periodSeconds: 10/" /etc/kubernetes/manifests/*.yaml'
EOF

ctr oci spec | jq 'del(.process.rlimits) | .hooks.createContainer += [{path: "/kind/bin/mount-product-files.sh"}]' \
	>/etc/containerd/cri-base.json

# Unpacking the images here saves every cluster the time, and /build is the only place where it works: overlayfs
# refuses to write on the container's own file system, which is an overlayfs too.
root=/build/containerd
containerd --root "$root" >/build/log 2>&1 &
daemon=$!
for ((i = 0; i < 300; i++)); do
	kill -0 "$daemon" || break
	! ctr version >/dev/null 2>&1 || break
	sleep 0.1
done
ctr --namespace k8s.io images import --label io.cri-containerd.image=managed --snapshotter overlayfs - ||
	{
		tail -n 20 /build/log >&2
		exit 1
	}
kill "$daemon"
wait "$daemon" || true

# stay FROM TO leaves what is in FROM in the folder TO, with links to it. Everything below /var becomes a volume of its
# own for each node; what stays in the image is neither copied nor read from disk again by the next cluster.
stay() {
	local entry
	mkdir -p "$2"
	for entry in "$1"/*; do
		mv "$entry" "$2/"
		ln -s "$2/${entry##*/}" "$entry"
	done
}
stay "$root/io.containerd.content.v1.content/blobs/sha256" /kind/containerd/blobs
stay "$root/io.containerd.snapshotter.v1.overlayfs/snapshots" /kind/containerd/snapshots
mkdir -p /var/lib/containerd
cp -a "$root/." /var/lib/containerd
rm -rf /run/containerd
