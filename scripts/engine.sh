#!/usr/bin/env bash
# engine.sh installs, starts and stops a container engine on a Debian machine.
#
# usage: scripts/engine.sh COMMAND...
#   install   installs what is missing of docker.io, iptables, iproute2, jq and what they need, with apt-get
#   install-image-tools
#             the same for debootstrap and Debian's keys, which build a node image
#   start     starts dockerd in the background, unless an engine answers already; waits until it answers
#   stop      ends the dockerd that start started, and its containers and networks; leaves other engines alone
#   sysctl    raises fs.inotify.max_user_instances and max_user_watches until the next boot
#   status    says whether an engine answers, and whether start started it
# State and log are in /var/lib/operator-lab/engine. All commands except status need root.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin # a shell opened with `su` may lack them

# Our engine's settings, pid and log. Images and containers are in its default folder, where other engines find them.
readonly STATE=/var/lib/operator-lab/engine SOCKET=unix:///var/run/docker.sock

say() { printf 'engine: %s\n' "$*" >&2; }
die() { say "$@" && exit 1; }

# install PACKAGE:FILE... installs each package whose file or command is missing.
install() {
	local pair missing=()
	for pair; do
		command -v "${pair#*:}" >/dev/null || [[ -e ${pair#*:} ]] || missing+=("${pair%%:*}")
	done
	((${#missing[@]} > 0)) || { say "nothing to install" && return; }
	command -v apt-get >/dev/null || die "this machine has no apt-get; install by hand: ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq || say "apt-get update failed for some sources, going on"
	# docker is a package of its own since Debian 13.
	if [[ ${missing[*]} == *docker.io* ]] && apt-cache show docker-cli >/dev/null 2>&1; then missing+=(docker-cli); fi
	# Where the kernel confines by AppArmor, dockerd starts no container without its parser.
	if grep -qs Y /sys/module/apparmor/parameters/enabled; then missing+=(apparmor); fi
	# Without systemd, RUNLEVEL=1 keeps the packages from starting a daemon without our settings.
	[[ -d /run/systemd/system ]] || export RUNLEVEL=1
	say "installing ${missing[*]}"
	apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "${missing[@]}" >"$STATE/apt.log" 2>&1 ||
		die "apt-get could not install ${missing[*]}: $(tail -n 3 "$STATE/apt.log")"
}

# granted lists the capabilities that this machine grants to root. Some hosts of containers withhold some.
granted() { setpriv --dump | sed -n 's/^Capability bounding set: //p' | tr ',' '\n'; }
withheld() { [[ $(granted) != "$(setpriv --list-caps)" ]]; }

# write_config writes $STATE/daemon.json: the settings of /etc/docker/daemon.json, and runtimes of ours.
write_config() {
	# gVisor, for grading. bin/classroom grade puts it there; nobody asks for it before.
	local filter=".runtimes.runsc //= {path: \"$STATE/runsc\", runtimeArgs: [\"--network=none\"]}"
	if withheld; then
		# A privileged container asks for all capabilities, and Docker 20.10 fails where the machine withholds one.
		cat >"$STATE/runc-granted" <<-RUNTIME
			#!/bin/bash
			# Written by scripts/engine.sh of the operator lab: runc that asks only for capabilities that this machine grants.
			granted='$(granted | jq -Rnc '[inputs | "CAP_" + ascii_upcase]')'
		RUNTIME
		cat >>"$STATE/runc-granted" <<-'RUNTIME'
			for ((i = 1; i <= $#; i++)); do
				next=$((i + 1))
				case ${!i} in
				--bundle | -b) file=${!next}/config.json ;;
				--process | -p) file=${!next} ;;
				esac
			done
			if [[ -f ${file:-} ]]; then
				json=$(jq -c --argjson granted "$granted" '
					def granted: if . == null then . else map_values(if type == "array" then . - (. - $granted) else . end) end;
					if has("process") then .process.capabilities |= granted else .capabilities |= granted end' "$file") &&
					printf '%s\n' "$json" >"$file"
			fi
			exec runc "$@"
		RUNTIME
		chmod 0755 "$STATE/runc-granted"
		filter+=" | .runtimes[\"runc-granted\"] = {path: \"$STATE/runc-granted\"} | .[\"default-runtime\"] //= \"runc-granted\""
	fi
	jq "$filter" <<<"$(cat /etc/docker/daemon.json 2>/dev/null || echo '{}')" >"$STATE/daemon.json" || die "/etc/docker/daemon.json is not valid JSON; repair it"
}

answers() { timeout 10 docker ${1:+-H "$1"} version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# our_pid prints the pid of the dockerd that start started, if it is alive.
our_pid() {
	local pid
	pid=$(cat "$STATE/dockerd.pid" 2>/dev/null) && grep -qsF -- "$STATE/daemon.json" "/proc/$pid/cmdline" && echo "$pid"
}
gone() { ! our_pid >/dev/null; }
answers_or_gone() { answers "$SOCKET" || gone; }

# wait_until SECONDS COMMAND... runs COMMAND until it succeeds.
wait_until() {
	local end=$((SECONDS + $1))
	until "${@:2}"; do ((SECONDS < end)) || return 1; sleep 0.2; done
}

# launch starts dockerd, unless ours is alive, so that it outlives this shell; and waits until it answers.
launch() {
	if gone; then
		local containerd=/var/run/docker/containerd/containerd.pid
		# The containerd of a killed dockerd ends with it, and a new dockerd waits for the pid in this file in vain.
		grep -qs '(containerd) [^Z]' "/proc/$(cat "$containerd" 2>/dev/null)/stat" || rm -f "$containerd"
		rm -f "$STATE/dockerd.pid"
		cp /proc/sys/kernel/random/boot_id "$STATE/boot"
		( # without the descriptors of our callers: a lock among them would stay locked
			for fd in /proc/self/fd/*; do [[ ${fd##*/} == [012] ]] || eval "exec ${fd##*/}>&-"; done
			exec setsid --fork dockerd --config-file "$STATE/daemon.json" --pidfile "$STATE/dockerd.pid" </dev/null >>"$STATE/dockerd.log" 2>&1
		)
		wait_until 10 test -s "$STATE/dockerd.pid" || die "dockerd did not start: $(tail -n 3 "$STATE/dockerd.log")"
	fi
	wait_until 60 answers_or_gone || true
	answers "$SOCKET" || die "dockerd does not answer after 60 s; the end of $STATE/dockerd.log: $(tail -n 3 "$STATE/dockerd.log")"
}

start() {
	! answers "" || { say "an engine answers already" && return; }
	[[ -z ${DOCKER_HOST:-} ]] || die "no engine answers at DOCKER_HOST=$DOCKER_HOST; unset it, or start that engine"
	type dockerd jq >/dev/null 2>&1 || die "dockerd or jq is not installed: $0 install"
	if [[ -d /run/systemd/system ]] && ! withheld && systemctl start docker; then
		wait_until 60 answers "" || die "docker.service does not answer: journalctl -u docker"
		say "started docker.service"
		return
	fi
	write_config
	launch
	# Without systemd, cgroup v1 puts all containers into one group that weighs as much as one program of the host: beside a
	# compilation, etcd then needs a second for a write. With the weight of eight, the operator under test was too late.
	if [[ -e /sys/fs/cgroup/cpu/cpu.shares && ! -d /run/systemd/system ]]; then
		{ mkdir -p /sys/fs/cgroup/cpu/docker && echo 4096 >/sys/fs/cgroup/cpu/docker/cpu.shares; } || say "containers may be slow: they got no weight"
	fi
	say "dockerd answers; its log is $STATE/dockerd.log"
}

stop() {
	local pid data link links=()
	if gone && { [[ $(cat "$STATE/boot" 2>/dev/null) != "$(</proc/sys/kernel/random/boot_id)" ]] || answers "$SOCKET"; }; then
		say "no engine was started by this script"
		return
	fi
	# Only dockerd can end all that a killed one left. One that hangs is killed first.
	if pid=$(our_pid) && ! answers "$SOCKET"; then
		kill -KILL "$pid"
		wait_until 10 gone || die "dockerd ($pid) hangs, and cannot be killed"
	fi
	launch
	pid=$(our_pid) data=$(docker -H "$SOCKET" info --format '{{.DockerRootDir}}')
	local bridge='{{with index .Options "com.docker.network.bridge.name"}}{{.}}{{else}}br-{{slice .ID 0 12}}{{end}}'
	mapfile -t links < <(docker -H "$SOCKET" network ls -q --filter driver=bridge | xargs -r docker -H "$SOCKET" network inspect --format "$bridge")
	kill "$pid"
	wait_until 60 gone || die "dockerd did not end within 60 s: kill -KILL $pid, then $0 stop"
	# dockerd mounts its data folder on itself. One that was killed does not unmount it, nor does the next.
	if awk -v d="$data" '$5 == d && $4 != "/" && substr(d, length(d) - length($4) + 1) == $4 {f = 1} END {exit !f}' /proc/self/mountinfo; then
		umount -l "$data"
	fi
	awk '$5 ~ "^/run/docker/" {print $5}' /proc/self/mountinfo | xargs -r umount -l # gVisor leaves a network
	for link in "${links[@]}"; do                                                    # dockerd leaves its bridges
		[[ ! -e /sys/class/net/$link ]] || ip link delete "$link"
	done
	rm -f "$STATE/dockerd.pid" "$STATE/boot"
	say "the engine is stopped"
}

# raise SETTING VALUE sets a setting of inotify, unless it is high enough.
raise() { (($(<"/proc/sys/fs/inotify/$1") >= $2)) || echo "$2" >"/proc/sys/fs/inotify/$1" || die "could not set fs.inotify.$1 to $2"; }

(($# > 0)) || set -- help
for command; do
	if [[ $command != *help && $command != status ]]; then
		((EUID == 0)) || die "'$command' needs root: sudo $0 $command"
		mkdir -p "$STATE"
		exec 9>"$STATE/lock"
		flock 9 # one start or stop at a time
	fi
	case $command in
	install) install docker.io:dockerd iptables:iptables iproute2:ip jq:jq ;;
	install-image-tools) install debootstrap:debootstrap debian-archive-keyring:/usr/share/keyrings/debian-archive-keyring.gpg ;;
	start | stop) "$command" ;;
	sysctl) raise max_user_instances 8192 && raise max_user_watches 524288 ;; # 128 instances are too few for a fifth cluster
	status)
		answers "" || die "no engine answers, or you may not use it"
		say "an engine answers$(gone || echo ", started by this script; its log is $STATE/dockerd.log")"
		;;
	*) sed -n '2,/^set/s/^# \?//p' "$0" && exit 2 ;;
	esac
done
