#!/bin/bash
# usage: provision.sh KUBERNETES-VERSION [REF PACKAGE PROGRAM]...
#
# Makes a node of the container that it runs in, with the images of Kubernetes' own Pods and an image REF for each
# PROGRAM of a Debian PACKAGE. The folder /build has what goes in: this folder as files, kind's node files as kind, and
# the programs. It is a volume, and so no part of the node image.
set -euo pipefail
cd /build
kubernetes=$1
shift

fail() {
	echo "$*" >&2
	exit 1
}

# --- Files ---

cp --recursive --no-preserve=mode kind/. /
chmod 0755 /usr/local/bin/* /kind/bin/* # a Go module has no modes
install -m 0755 containerd containerd-shim-runc-v2 ctr /usr/local/bin
install -m 0755 kubeadm kubectl kubelet /usr/bin
install -D -m 0755 --target-directory /opt/cni/bin host-local loopback portmap ptp
install -D -m 0644 --target-directory /etc/cni/net.d files/10-lab.conflist
install -D -m 0644 files/default-manifest.yaml /kind/manifests/default-cni.yaml
install -D -m 0644 files/default-manifest.yaml /kind/manifests/default-storage.yaml
printf %s "$kubernetes" >/kind/version
mkdir -p /etc/kubernetes/manifests

# --- Services ---

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

# On cgroup v1, systemd removes a slice from hierarchies that it does not use. The kubelet, which has just made the slice
# for a Pod, then tries again ten seconds later. So on cgroup v1 systemd manages no cgroup of a Pod. The kubelet asks
# containerd which way it is.
mkdir -p /etc/systemd/system/containerd.service.d
cat >/etc/systemd/system/containerd.service.d/cgroup-v1.conf <<'EOF'
[Service]
ExecStartPre=/bin/sh -c 'test -e /sys/fs/cgroup/cgroup.controllers || sed -i "s/SystemdCgroup = true/SystemdCgroup = false/" /etc/containerd/config.toml'
EOF
grep -q 'SystemdCgroup = true' /etc/containerd/config.toml

# kubeadm has etcd, the API server and the scheduler probed each second, each time over a new connection: a fifth of
# what a cluster does at rest. The kubelet also probes as soon as a container has started.
cat >/etc/systemd/system/kubelet.service.d/20-probes.conf <<'EOF'
[Service]
ExecStartPre=-/bin/sh -c 'sed -i "s/periodSeconds: 1$/periodSeconds: 10/" /etc/kubernetes/manifests/*.yaml'
EOF

ctr oci spec | jq 'del(.process.rlimits) | .hooks.createContainer += [{path: "/kind/bin/mount-product-files.sh"}]' \
	>/etc/containerd/cri-base.json

# --- Images ---

# take copies programs of Debian, with the libraries and the loader that they name, to the folder tree.
take() {
	{
		printf '%s\n' "$@"
		ldd "$@" | grep -o '/[^ :]*'
	} | sort -u | xargs cp --dereference --parents --target-directory=tree
}

# add_image REF PROGRAM USER imports an image whose only layer is the folder tree, and empties the folder. A docker-archive
# is three files: docker save writes the same ones.
add_image() {
	tar --directory tree --create --file layer.tar .
	jq --null-input --arg program "$2" --arg user "$3" --arg path "$PATH" --arg arch "$(dpkg --print-architecture)" \
		--arg layer "sha256:$(sha256sum <layer.tar | cut -d ' ' -f 1)" '{
			os: "linux", architecture: $arch, rootfs: {type: "layers", diff_ids: [$layer]},
			config: {User: $user, Env: ["PATH=" + $path], Entrypoint: [$program]}}' >config.json
	jq --null-input --arg ref "$1" '[{RepoTags: [$ref], Config: "config.json", Layers: ["layer.tar"]}]' >manifest.json
	tar --create manifest.json config.json layer.tar |
		ctr --namespace k8s.io images import --label io.cri-containerd.image=managed --snapshotter overlayfs -
	rm -r tree
	mkdir tree
}

# Unpacked images save each cluster a copy of 400 MB: on disk, and in memory, where clusters share what they run from
# the image. They can be unpacked in /build only: overlayfs does not write on another overlayfs.
containerd --root /build/root >log 2>&1 &
daemon=$!
for ((i = 0; i < 300; i++)); do
	kill -0 "$daemon" 2>/dev/null || fail "containerd has ended: $(tail -n 5 log)"
	! ctr version >/dev/null 2>&1 || break
	sleep 0.1
done

mkdir tree
images=$(kubeadm config images list --kubernetes-version "$kubernetes")
pause=$(sed -n 's/^ *sandbox_image = "\(.*\)"/\1/p' /etc/containerd/config.toml)
[[ $pause ]] || fail "containerd's configuration does not name the image that holds a Pod's namespaces"
for ref in $images "$pause"; do
	program=${ref##*/} version=${ref##*:}
	program=${program%%:*} version=${version#v}
	# etcd's tag has the number of a build behind its version. Any pause will do.
	[[ $program == pause || $("./$program" --version 2>&1) == *"${version%-*}"* ]] ||
		fail "kubeadm $kubernetes asks for $ref: clusters/components has another version of it"
	install -D --target-directory tree/usr/local/bin "$program"
	if [[ $program == kube-proxy ]]; then # it runs iptables in its nftables form, and nft
		take /usr/sbin/xtables-nft-multi /usr/sbin/nft /usr/lib/*/xtables/*.so
		for name in {iptables,ip6tables}{,-save,-restore}; do
			ln -s xtables-nft-multi "tree/usr/sbin/$name"
		done
	fi
	add_image "$ref" "$program" ""
done
while (($#)); do
	version=$(dpkg-query --show --showformat '${source:Upstream-Version}' "$2")
	[[ $version == "${1##*:}" ]] || fail "Debian's $2 is $version: change the tag of $1"
	take "$3"
	add_image "$1" "${3##*/}" 65532:65532 # a number, so that the kubelet can tell that it is not root
	shift 3
done
ctr --namespace k8s.io content prune references # of the packed layers, which nobody needs now
kill "$daemon"
wait "$daemon" || true

# /var becomes a volume of each node, with a copy of what the image has there. What is behind a link is not copied.
mkdir /kind/snapshots
for snapshot in root/io.containerd.snapshotter.v1.overlayfs/snapshots/*; do
	mv "$snapshot" /kind/snapshots
	ln -s "/kind/snapshots/${snapshot##*/}" "$snapshot"
done
mkdir -p /var/lib/containerd
cp -a root/. /var/lib/containerd
rm -rf /run/containerd
