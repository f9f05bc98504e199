#!/bin/bash
# usage: rootfs.sh SUITE PACKAGES OUT
#
# Installs the comma-separated Debian PACKAGES into an empty root file system and writes it to the tar file OUT.
# Needs root. debootstrap verifies the packages. They come from this machine's own package source if it is a Debian,
# else from debootstrap's default.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

suite=$1 packages=$2 out=$3

# cleanup also ends an interrupted debootstrap and undoes its mounts.
cleanup() {
	if [[ $worker ]]; then
		kill -- "-$worker" 2>/dev/null || true
		for _ in {1..50}; do # until all of it has ended
			kill -0 -- "-$worker" 2>/dev/null || break
			sleep 0.1
		done
	fi
	awk -v dir="$tree/" 'index($5, dir) == 1 {print $5}' /proc/self/mountinfo | sort -r | xargs -r -n 1 umount
	rm -rf --one-file-system "$tree"
}

worker=
tree=$(mktemp -d "$(realpath "$(dirname "$out")")/rootfs-XXXXXX")
trap cleanup EXIT
trap 'exit 130' INT TERM
chmod 0755 "$tree"

# What apt needs to get through to its sources, debootstrap needs too.
eval "$(apt-config shell http_proxy Acquire::http::Proxy 2>/dev/null || true)"
[[ -z ${http_proxy:-} ]] || export http_proxy

# shellcheck disable=SC2016 # apt replaces these names, not the shell
mirror=$(apt-get indextargets --format '$(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
	awk '$1 == "Debian" && $2 == "main" && $3 ~ "^(https?|file|copy):" {print $3; exit}' || true)

# Without --force-check-gpg, debootstrap only warns when this machine has none of Debian's keys.
# In the background and in a session of its own, so that bash handles a signal at once and can end all of it.
setsid debootstrap --force-check-gpg --variant=minbase --include="$packages" "$suite" "$tree" ${mirror:+"$mirror"} </dev/null >&2 &
worker=$!
wait "$worker" || {
	tail -n 5 "$tree/debootstrap/debootstrap.log" >&2 2>/dev/null || true
	exit 1
}
worker=

cd "$tree"
rm -rf ./var/cache/apt/* ./var/lib/apt/lists/* ./var/log/* ./dev/* \
	./usr/share/{man,locale,info,doc-base,lintian} ./etc/{hostname,resolv.conf}
find ./usr/share/doc -type f ! -name copyright -delete
: >./etc/machine-id
tar --numeric-owner --create --file "$out" .
cd /
