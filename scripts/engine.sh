#!/usr/bin/env bash
# engine.sh brings up a container engine on a Debian machine, and takes it away again.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin # a shell opened with `su` may lack them

# Everything that the machine's own engine needs from us, its log included. Images and containers stay in the
# engine's default place, so that an engine started some other way finds the same ones.
readonly STATE=/var/lib/operator-lab/engine

readonly READY_SECONDS=60 # dockerd answers after 5 s here; the first start on a slow disk takes longer
readonly STOP_SECONDS=60  # dockerd gives its containers 15 s before it kills them

usage() {
	cat <<'USAGE'
usage: scripts/engine.sh COMMAND [--private DIR]

  install   installs what is missing of docker.io, iptables, iproute2, jq and what they need, with apt-get
  install-image-tools
            the same for debootstrap and Debian's keys, which build a node image
  start     starts dockerd in the background, unless an engine answers already; waits until it answers
  stop      ends the dockerd that start started, and everything in it; other engines are left alone
  sysctl    raises fs.inotify.max_user_instances and max_user_watches until the next boot
  status    says whether an engine answers, whose it is, and where its log is

  --private DIR  for start, stop and status: a second engine beside the machine's own, with data, sockets, log,
                 bridge and subnets of its own, all of it under DIR. `start` prints its DOCKER_HOST on stdout.
                 `stop` removes its containers and networks; the images stay in DIR/data until DIR is deleted.

Without --private, state and log are in /var/lib/operator-lab/engine, outside any checkout.
All commands except status need root.
USAGE
}

say() { printf 'engine: %s\n' "$*" >&2; }
die() {
	say "$@"
	exit 1
}

need_root() {
	((EUID == 0)) || die "'$1' needs root: sudo $0 $*"
}

# ---------------------------------------------------------------------------------------------- install

# missing_packages prints one Debian package per line.
missing_packages() {
	if [[ $1 == engine ]]; then
		missing_engine_packages
		return
	fi
	command -v debootstrap >/dev/null || echo debootstrap
	[[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || echo debian-archive-keyring
}

# missing_engine_packages are those of an engine. A bare docker client does not count as one.
missing_engine_packages() {
	command -v dockerd >/dev/null || echo docker.io
	if ! command -v docker >/dev/null && apt-cache show docker-cli >/dev/null 2>&1; then
		echo docker-cli # a package of its own since Debian 13
	fi
	command -v iptables >/dev/null || echo iptables
	command -v ip >/dev/null || echo iproute2
	command -v jq >/dev/null || echo jq
	# Where the kernel confines by AppArmor, dockerd cannot start a container without this.
	if grep -qs Y /sys/module/apparmor/parameters/enabled && ! command -v apparmor_parser >/dev/null; then
		echo apparmor
	fi
}

# install WHAT: engine, or image for what builds a node image.
install() {
	need_root install
	local packages
	mapfile -t packages < <(missing_packages "$1")
	if ((${#packages[@]} == 0)); then
		say "nothing to install"
		return
	fi
	command -v apt-get >/dev/null ||
		die "this machine has no apt-get; install a container engine by hand (see https://docs.docker.com/engine/install)"
	export DEBIAN_FRONTEND=noninteractive
	# One broken third-party source must not stop us: the installation below is what has to work.
	apt-get update -qq || say "apt-get update failed for some sources, going on"
	mapfile -t packages < <(missing_packages "$1") # docker-cli can only be seen after the update
	say "installing ${packages[*]}"
	# Without systemd, RUNLEVEL=1 keeps the packages from starting a daemon that lacks our settings.
	[[ -d /run/systemd/system ]] || export RUNLEVEL=1
	mkdir -p "$STATE"
	apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "${packages[@]}" \
		>"$STATE/apt.log" 2>&1 || {
		tail -n 5 "$STATE/apt.log" >&2
		die "apt-get could not install ${packages[*]}; all of its messages are in $STATE/apt.log"
	}
}

# ---------------------------------------------------------------------------------------------- capabilities

readonly CAPABILITIES=(CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE
	SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL
	SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE)

# missing_capabilities prints, as a JSON list, what the kernel knows and this machine does not grant even to root.
missing_capabilities() {
	local bounding last bit list=
	bounding=$((16#$(awk '/^CapBnd:/ {print $2}' /proc/self/status)))
	last=$(</proc/sys/kernel/cap_last_cap)
	for ((bit = 0; bit <= last && bit < ${#CAPABILITIES[@]}; bit++)); do
		(((bounding >> bit) & 1)) || list+="${list:+,}\"CAP_${CAPABILITIES[bit]}\""
	done
	printf '[%s]\n' "$list"
}

# write_runtime FILE MISSING writes an OCI runtime that asks runc only for capabilities the machine grants. A
# privileged container asks for all of them, and Docker 20.10 then fails with "unable to apply caps".
write_runtime() {
	cat >"$1" <<-RUNTIME
		#!/bin/bash
		# Written by scripts/engine.sh of the operator lab: runc without the capabilities this machine does not grant.
		missing='$2'
	RUNTIME
	cat >>"$1" <<-'RUNTIME'
		command= file=
		for ((i = 1; i <= $#; i++)); do
			next=$((i + 1))
			case ${!i} in
			create | run | restore | exec) [[ $command ]] || command=${!i} ;;
			--bundle | -b) file=${!next}/config.json ;;
			--bundle=*) file=${!i#*=}/config.json ;;
			--process | -p) file=${!next} ;;
			--process=*) file=${!i#*=} ;;
			esac
		done
		if [[ $command && -f $file ]]; then
			granted=$(jq -c --argjson missing "$missing" '
				def granted: if . == null then . else map_values(if type == "array" then . - $missing else . end) end;
				if has("process") then .process.capabilities |= granted else .capabilities |= granted end' "$file") &&
				printf '%s\n' "$granted" >"$file"
		fi
		exec runc "$@"
	RUNTIME
	chmod 0755 "$1"
}

# write_config DIR BASE writes DIR/daemon.json: the settings of the file BASE, if there is one, and our runtime
# where it is needed. The file /etc/docker/daemon.json itself is only ever read.
write_config() {
	local dir=$1 base=$2 missing settings='{}'
	if [[ -s $base ]]; then
		settings=$(jq . "$base") || die "$base is not valid JSON; repair it and try again"
	fi
	missing=$(missing_capabilities)
	if [[ $missing != '[]' ]]; then
		write_runtime "$dir/runc-granted" "$missing"
		settings=$(jq --arg path "$dir/runc-granted" \
			'.runtimes["runc-granted"] = {path: $path} | .["default-runtime"] //= "runc-granted"' <<<"$settings")
	fi
	# gVisor, for grading. bin/classroom grade puts it there; until then nobody asks for it.
	settings=$(jq --arg path "$dir/runsc" '.runtimes.runsc //= {path: $path, runtimeArgs: ["--network=none"]}' <<<"$settings")
	printf '%s\n' "$settings" >"$dir/daemon.json"
}

# ---------------------------------------------------------------------------------------------- processes

# pid_of DIR prints the pid of the dockerd that was started with DIR/daemon.json, if it is alive.
pid_of() {
	local pid
	[[ -s $1/dockerd.pid ]] || return 1
	pid=$(<"$1/dockerd.pid")
	tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "--config-file $1/daemon.json " || return 1
	echo "$pid"
}

# orphans EXEC prints the pids of the containerd and the shims that belong to the execution root EXEC. They outlive
# a dockerd that was killed.
orphans() {
	local proc
	for proc in /proc/[0-9]*; do
		case $(tr '\0' ' ' 2>/dev/null <"$proc/cmdline") in
		*containerd*"-address $1/containerd/containerd.sock "* | *containerd*"--config $1/containerd/containerd.toml "*)
			echo "${proc#/proc/}"
			;;
		esac
	done
}

# wait_until SECONDS COMMAND... runs COMMAND until it succeeds.
wait_until() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.2
	done
}

answers() { timeout 10 docker ${1:+-H "$1"} version --format '{{.Server.Version}}' >/dev/null 2>&1; }
answers_or_dead() { answers "$1" || gone "$2"; }
gone() { ! is_running "$1" dockerd; }
no_orphans() { [[ -z $(orphans "$1") ]]; }

# is_running PID NAME says whether PID is a living process called NAME, and no zombie.
is_running() {
	[[ $(cat "/proc/$1/stat" 2>/dev/null) == *"($2) "[!Z]* ]]
}

# children PID prints the pids of its children.
children() {
	local stat
	for stat in /proc/[0-9]*/stat; do
		# "pid (name) state ppid ...", and a name may contain anything, a line break too
		sed -zE "s/^([0-9]+) \(.*\) . $1 .*/\1\n/;t;d" "$stat" 2>/dev/null || true
	done | tr -d '\0'
}

# launch DIR HOST EXEC FLAGS... starts dockerd so that it survives this shell and everything above it.
launch() {
	local dir=$1 host=$2 containerd_pid=$3/containerd/containerd.pid pid
	shift 3
	rm -f "$dir/dockerd.pid" # of a daemon that is gone: pid_of found none alive
	# The containerd of a killed dockerd dies with it. Until its parent took note of that, the new dockerd believes in
	# the pid it left, and waits in vain.
	if [[ -s $containerd_pid ]] && ! is_running "$(<"$containerd_pid")" containerd; then rm -f "$containerd_pid"; fi
	setsid --fork dockerd --config-file "$dir/daemon.json" --pidfile "$dir/dockerd.pid" "$@" \
		</dev/null >>"$dir/dockerd.log" 2>&1 9>&-
	wait_until 10 test -s "$dir/dockerd.pid" || die "dockerd did not start: $(tail -n 3 "$dir/dockerd.log")"
	pid=$(<"$dir/dockerd.pid")
	wait_until "$READY_SECONDS" answers_or_dead "$host" "$pid" || true
	answers "$host" ||
		die "dockerd did not answer within $READY_SECONDS s; the end of $dir/dockerd.log: $(tail -n 3 "$dir/dockerd.log")"
}

# end DIR EXEC DATA ends dockerd, and what a killed dockerd left running: containers, shims, containerd. Then it takes
# away the mounts under its folders.
end() {
	local dir=$1 exec=$2 data=$3 pid
	if pid=$(pid_of "$dir"); then
		kill "$pid"
		wait_until "$STOP_SECONDS" gone "$pid" || kill -KILL "$pid"
	fi
	for pid in $(orphans "$exec"); do
		# The first process of a container takes the rest of it along.
		children "$pid" | xargs -r kill -KILL || true
		kill -KILL "$pid" 2>/dev/null || true
	done
	wait_until 10 no_orphans "$exec" || die "processes $(orphans "$exec" | xargs) would not end"
	unmount_below "$exec"
	unmount_below "$data"
	# dockerd mounts its data on itself. Whether it was dockerd, only the first one knows: our own folder is always it.
	if [[ $data == "$dir"/* || -e $exec/unmount-on-shutdown ]] && mountpoint -q "$data"; then umount -l "$data"; fi
	rm -f "$dir/dockerd.pid" "$exec/containerd/containerd.pid" "$exec/unmount-on-shutdown"
}

# unmount_below DIR unmounts everything under the folder, innermost first.
unmount_below() {
	local mount
	awk -v dir="$(realpath -m "$1")/" 'index($5, dir) == 1 {print $5}' /proc/self/mountinfo | sort -r |
		while read -r mount; do umount -l "$mount"; done
}

# bridges HOST prints the network links that belong to the engine's own networks. dockerd leaves them behind.
bridges() {
	local format='{{with index .Options "com.docker.network.bridge.name"}}{{.}}{{else}}br-{{slice .ID 0 12}}{{end}}'
	docker -H "$1" network ls -q --filter driver=bridge |
		xargs -r docker -H "$1" network inspect --format "$format"
}

delete_links() {
	local link
	for link; do
		[[ ! -e /sys/class/net/$link ]] || ip link delete "$link"
	done
}

# tell_twins says which links have the same address. An engine that was killed leaves its bridge, and with two bridges of the
# same addresses no cluster can be reached. Which of them is alive, in somebody's container for example, nobody can tell.
tell_twins() {
	local twins
	ip -4 -o address show | awk '{n[$4]++; links[$4] = links[$4] " " $2} END {for (a in n) if (n[a] > 1) print links[a]}' |
		while read -r twins; do
			say "these links have the same address, so clusters may not be reached: $twins (fix: ip link delete the one that nobody uses)"
		done
}

# ---------------------------------------------------------------------------------------------- the machine's engine

# Without systemd, cgroup v1 puts all containers into one group that weighs as much as a single program of the host:
# beside a compilation a cluster's etcd then needs a second for a write. So the group gets the weight of four. With
# that of eight it was the operator under test, a program of the host, that came too late.
readonly DOCKER_GROUP=/sys/fs/cgroup/cpu/docker WEIGHT=4096

weigh_containers() {
	# On cgroup v2, and where systemd places the containers, there is no such group, and none is made.
	[[ -e /sys/fs/cgroup/cpu/cpu.shares && ! -d /run/systemd/system ]] || return 0
	if ! { mkdir -p "$DOCKER_GROUP" && echo "$WEIGHT" >"$DOCKER_GROUP/cpu.shares"; }; then
		say "could not give the containers more weight; they may be slow"
	fi
}

readonly SOCKET=unix:///var/run/docker.sock

start() {
	if answers ""; then
		say "an engine answers already"
		return
	fi
	[[ -z ${DOCKER_HOST:-} ]] || die "no engine answers at DOCKER_HOST=$DOCKER_HOST; unset it, or start that engine"
	command -v dockerd >/dev/null || die "dockerd is not installed: $0 install"
	if [[ -d /run/systemd/system && $(missing_capabilities) == '[]' ]] && systemctl start docker; then
		wait_until "$READY_SECONDS" answers "" || die "docker.service does not answer: journalctl -u docker"
		say "started docker.service"
		return
	fi
	mkdir -p "$STATE"
	write_config "$STATE" /etc/docker/daemon.json
	launch "$STATE" "$SOCKET" /var/run/docker
	weigh_containers
	tell_twins
	say "dockerd answers; its log is $STATE/dockerd.log"
}

stop() {
	local links=()
	if ! pid_of "$STATE" >/dev/null && [[ ! -e $STATE/dockerd.pid ]]; then
		say "no engine was started by this script"
		return
	fi
	if answers "$SOCKET"; then
		docker -H "$SOCKET" info --format '{{.DockerRootDir}}' >"$STATE/data-root"
		mapfile -t links < <(bridges "$SOCKET")
	fi
	local data=/var/lib/docker
	[[ ! -s $STATE/data-root ]] || data=$(<"$STATE/data-root")
	end "$STATE" /var/run/docker "$data"
	delete_links "${links[@]}"
	say "the engine is stopped"
}

# ---------------------------------------------------------------------------------------------- a private engine

# free_number picks N so that no route touches 10.N.0.0/16.
free_number() {
	local n
	for n in {213..250}; do
		if [[ -z $(ip -4 route show root "10.$n.0.0/16" && ip -4 route show match "10.$n.0.0/16" | grep -v ^default) ]]; then
			echo "$n"
			return
		fi
	done
	die "no free subnet from 10.213.0.0/16 to 10.250.0.0/16"
}

# rules VERB N adds (-I), deletes (-D) or looks for (-C) what lets the containers of 10.N.0.0/16 talk. A second
# dockerd that manages iptables itself empties the chains of the first one, so the private one must not.
rules() {
	local verb=$1 subnet=10.$2.0.0/16
	iptables -w "$verb" FORWARD -s "$subnet" -j ACCEPT &&
		iptables -w "$verb" FORWARD -d "$subnet" -j ACCEPT &&
		iptables -w -t nat "$verb" POSTROUTING -s "$subnet" ! -d "$subnet" -j MASQUERADE
}

# prepare_network N makes the bridge and the rules, unless they are there.
prepare_network() {
	if [[ ! -e /sys/class/net/lab$1 ]]; then
		ip link add "lab$1" type bridge
		ip address add "10.$1.0.1/24" dev "lab$1"
		ip link set "lab$1" up
	fi
	echo 1 >/proc/sys/net/ipv4/ip_forward
	rules -C "$1" 2>/dev/null || rules -I "$1"
}

start_private() {
	local dir=$1 n pool=()
	local host=unix://$dir/docker.sock
	# A socket's path has at most 107 characters, and containerd's is the longest.
	((${#dir} <= 60)) || die "the path $dir is too long for a socket; use one of at most 60 characters"
	if ! answers "$host"; then
		command -v dockerd >/dev/null || die "dockerd is not installed: $0 install"
		write_config "$dir" ""
		[[ -s $dir/number ]] || free_number >"$dir/number"
		n=$(<"$dir/number")
		prepare_network "$n"
		# When networks are there already, because the dockerd before this one was killed, they keep their
		# addresses; and a dockerd that finds some beside this option deletes docker0, which is not its own.
		[[ -e $dir/data/network ]] || pool=(--default-address-pool "base=10.$n.128.0/17,size=24")
		weigh_containers
		launch "$dir" "$host" "$dir/exec" --host "$host" --data-root "$dir/data" --exec-root "$dir/exec" --iptables=false \
			--bridge "lab$n" "${pool[@]}"
		say "dockerd answers; its log is $dir/dockerd.log"
	fi
	echo "DOCKER_HOST=$host"
}

stop_private() {
	local dir=$1 n links=()
	local host=unix://$dir/docker.sock
	if [[ ! -e $dir/number ]]; then
		say "no engine was started in $dir"
		return
	fi
	if answers "$host"; then
		docker -H "$host" ps -aq | xargs -r docker -H "$host" rm -f -v >/dev/null
		mapfile -t links < <(bridges "$host")
	fi
	end "$dir" "$dir/exec" "$dir/data"
	n=$(<"$dir/number")
	delete_links "${links[@]}" "lab$n"
	# Bridges of networks nobody could ask for any more: their addresses say whose they are.
	mapfile -t links < <(ip -4 -o address show to "10.$n.128.0/17" | awk '{print $2}' | grep '^br-' || true)
	delete_links "${links[@]}"
	! rules -C "$n" 2>/dev/null || rules -D "$n"
	rm -rf "$dir/number" "$dir/docker.sock" "$dir/exec" "$dir/data/network"
	say "the engine in $dir is stopped"
}

# ---------------------------------------------------------------------------------------------- the rest

# raise KEY VALUE sets a kernel setting unless it is high enough.
raise() {
	local file=/proc/sys/${1//.//}
	(($(<"$file") >= $2)) || echo "$2" >"$file" || die "could not set $1 to $2"
	say "$1 = $(<"$file")"
}

# settings raises what runs out first with several clusters on one machine: with the default of 128 instances,
# kube-proxy of the fifth cluster fails with "too many open files".
settings() {
	need_root sysctl
	raise fs.inotify.max_user_instances 8192
	raise fs.inotify.max_user_watches 524288
}

# status DIR HOST OWN exits 1 when no engine answers.
status() {
	local dir=$1 host=$2 whose="not started by this script"
	! pid_of "$dir" >/dev/null || whose="started by this script, log in $dir/dockerd.log"
	answers "$host" || die "no engine answers${host:+ at $host}, or you may not use it"
	say "docker $(docker ${host:+-H "$host"} version --format '{{.Server.Version}}') answers, $whose"
}

# locked DIR keeps a second start or stop of the same engine waiting.
locked() {
	need_root "$command"
	mkdir -p "$1"
	exec 9>"$1/lock"
	flock 9
}

main() {
	local command=${1:-} private=
	shift || true
	case "${1:-}" in
	"") ;;
	--private)
		[[ -n ${2:-} && $# == 2 ]] || die "--private needs a folder"
		private=$(realpath -m "$2")
		;;
	*) die "unknown argument '$1'; see $0 --help" ;;
	esac
	case "$command${private:+ private}" in
	install) install engine ;;
	install-image-tools) install image ;;
	sysctl) settings ;;
	start)
		locked "$STATE"
		start
		;;
	stop)
		locked "$STATE"
		stop
		;;
	status) status "$STATE" "" ;;
	"start private")
		locked "$private"
		start_private "$private"
		;;
	"stop private")
		locked "$private"
		stop_private "$private"
		;;
	"status private") status "$private" "unix://$private/docker.sock" ;;
	--help | -h | help) usage ;;
	*)
		usage >&2
		exit 2
		;;
	esac
}

main "$@"
