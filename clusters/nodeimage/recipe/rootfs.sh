#!/bin/bash
# usage: rootfs.sh SUITE PACKAGES OUT
#
# Installs the comma-separated Debian PACKAGES into an empty root file system and writes it to the tar file OUT.
# Needs root. The packages come from where this machine gets its own, when it is a Debian, and are verified.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

suite=$1 packages=$2 out=$3

# mirror prints the address of the Debian archive in this machine's package sources.
mirror() {
	# shellcheck disable=SC2016 # apt replaces these names, not the shell
	apt-get indextargets --format '$(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk '$1 == "Debian" && $2 == "main" && $3 ~ "^(https?|file|copy):" {print $3; exit}'
}

# cleanup also ends an interrupted debootstrap and undoes the mounts it leaves.
cleanup() {
	[[ -z $worker ]] || kill -- "-$worker" 2>/dev/null || true
	wait
	awk -v dir="$tree/" 'index($5, dir) == 1 {print $5}' /proc/self/mountinfo | sort -r | xargs -r -n 1 umount
	rm -rf --one-file-system "$tree"
}

worker=
tree=$(mktemp -d "$(realpath "$(dirname "$out")")/rootfs-XXXXXX")
trap cleanup EXIT
trap 'exit 130' INT TERM
chmod 0755 "$tree"

# What apt needs to get through to its sources, debootstrap needs too.
proxy=$(apt-config shell proxy Acquire::http::Proxy 2>/dev/null || true)
if [[ $proxy ]]; then
	eval "$proxy"
	export http_proxy=$proxy
fi

archive=$(mirror || true)
# Without --force-check-gpg, debootstrap only warns when this machine has none of Debian's keys.
# In the background and in a session of its own, so that a signal is acted upon at once and reaches all of it.
setsid debootstrap --force-check-gpg --variant=minbase --include="$packages" "$suite" "$tree" \
	"${archive:-http://deb.debian.org/debian}" </dev/null >&2 &
worker=$!
wait "$worker" || {
	tail -n 5 "$tree/debootstrap/debootstrap.log" >&2 2>/dev/null || true
	exit 1
}
worker=

(
	cd "$tree"
	rm -rf ./var/cache/apt/* ./var/lib/apt/lists/* ./var/log/* ./dev/* \
		./usr/share/{man,locale,info,doc-base,lintian} ./etc/{hostname,resolv.conf}
	find ./usr/share/doc -type f ! -name copyright -delete
	: >./etc/machine-id
)

tar --directory "$tree" --numeric-owner --sort=name --create --file "$out" .
[[ -z ${SUDO_UID:-} ]] || chown "$SUDO_UID:${SUDO_GID:-}" "$out"
