#!/bin/sh
# Tries a package on this machine: a Debian or Ubuntu with systemd that is thrown away afterwards. As root:
#   trial.sh windlass_0.1.0_amd64.deb [windlass_0.2.0_amd64.deb]
# It is installed, serves, is reloaded, upgraded to the second package or over itself, removed and purged. Ends at the
# first failure.
set -eux
package=$(realpath "$1")
newer=$(realpath "${2:-$1}")
config=/etc/windlass/windlass.yaml
export DEBIAN_FRONTEND=noninteractive

# The service is ready when the command ends.
apt-get install -y "$package"
systemctl is-enabled windlass
windlass health
curl --fail --silent http://127.0.0.1:7880/ | grep -q '<!doctype html>'
WINDLASS_TOKEN_KEY=k1=@/var/lib/windlass/token-key windlass rooms
man -w windlass-serve || zcat /usr/share/man/man1/windlass-serve.1.gz | grep -q drain

# A file that the server cannot use is refused, with the reason.
systemctl reload windlass
echo 'bogus: 1' >>"$config"
if systemctl reload windlass; then exit 1; fi
journalctl -u windlass --no-pager | grep 'bogus. is no option'
sed -i '$ d' "$config"
systemctl reload windlass

# An upgrade replaces the server that runs, and nothing that the administrator has changed.
before=$(systemctl show -P MainPID windlass)
echo '# ours' >>"$config"
apt-get install -y --reinstall "$newer"
windlass health
test "$before" != "$(systemctl show -P MainPID windlass)"
grep -q '# ours' "$config"

apt-get remove -y windlass
if systemctl is-active windlass; then exit 1; fi
test -f "$config" -a -f /var/lib/windlass/token-key
apt-get purge -y windlass
left=$(find /etc /usr /var -xdev -name '*windlass*' -not -path '/usr/local/*' -not -path '/var/log/*')
test -z "$left$(getent passwd windlass)$(getent group windlass)"
