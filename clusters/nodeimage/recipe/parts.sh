#!/bin/bash
# usage: parts.sh memcached | netfilter
#
# Runs in the node's root file system, and writes to stdout a tar file with what an image needs of it: programs, and the
# libraries and the loader that they name.
set -euo pipefail

tree=$(mktemp -d)
chmod 0755 "$tree"

# take copies programs, and what they need, to the tree.
take() {
	{
		printf '%s\n' "$@"
		ldd "$@" | grep -o '/[^ :]*'
	} | sort -u | xargs cp --dereference --parents --target-directory="$tree"
}

case $1 in
memcached)
	take /usr/bin/memcached
	mkdir "$tree/etc"
	printf '%s\n' root:x:0:0::/: memcache:x:11211:11211::/: >"$tree/etc/passwd"
	printf '%s\n' root:x:0: memcache:x:11211: >"$tree/etc/group"
	;;
netfilter) # iptables in its nftables form, and nft
	take /usr/sbin/xtables-nft-multi /usr/sbin/nft /usr/lib/*/xtables/*.so
	for name in {iptables,ip6tables}{,-save,-restore}; do
		ln -s xtables-nft-multi "$tree/usr/sbin/$name"
	done
	;;
esac
tar --directory "$tree" --create .
