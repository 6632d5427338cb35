# The first process of a throwaway host: makes it reachable and becomes its sshd.
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

# Everything below /proc/sys but net is the machine's own, and one in net. It must be read-only here (access(2) says so
# to root, too).
for root in /proc/sys/* /proc/sys/net/netfilter/nf_hooks_lwtunnel; do
	if [ "$root" != /proc/sys/net ] && [ -w "$root" ]; then
		echo "refusing to run: $root of the machine could be written from here" >&2
		exit 70
	fi
done

# Docker's name server is reached by address translation, so the kernel tracks every connection of this host, and keeps
# a closed one for two minutes: 262,144 of them fill the table, and packets are dropped. A second is enough here.
tracked=/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait
[ ! -w $tracked ] || echo 1 >$tracked

sshd=$(command -v sshd) || { echo "there is no sshd in this image" >&2; exit 71; }
rm -f /run/ngxlab-sshd.pid
mkdir -p /run/sshd
chmod 0755 /run/sshd
if ! id bench >/dev/null 2>&1; then
	shell=/bin/bash
	[ -x $shell ] || shell=/bin/sh
	useradd --create-home --shell $shell bench 2>/dev/null || adduser -D -s $shell bench
	# No password, and not locked: sshd without PAM lets no locked user in.
	usermod -p '*' bench 2>/dev/null || echo 'bench:*' | chpasswd -e
fi
if [ -d /etc/sudoers.d ]; then
	echo 'bench ALL=(ALL:ALL) NOPASSWD: ALL' >/etc/sudoers.d/ngxlab
	chmod 0440 /etc/sudoers.d/ngxlab
fi
exec "$sshd" -D -e -f /etc/ngxlab/sshd_config
