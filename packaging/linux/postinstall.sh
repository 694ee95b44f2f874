#!/bin/sh
# After installing or upgrading. Debian calls it with "configure" and, after an upgrade, the version
# before; Red Hat with 1, or with 2 after an upgrade. DPKG_ROOT is set by dpkg --root.
set -e
root="${DPKG_ROOT:-}"

systemd-sysusers ${root:+--root="$root"} eventyard.conf

# The configuration may hold keys: it is for root and the yard.
group=$(sed -n 's/^eventyard:[^:]*:\([0-9]*\):.*/\1/p' "$root/etc/group")
chgrp "$group" "$root/etc/eventyard/eventyard.yaml"

if [ -z "$root" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart eventyard.service || true # where it runs, it goes on with the new program
fi

if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
	echo "Start the yard, now and at every boot, with: systemctl enable --now eventyard"
	echo "Then send a first event: eventyard hub create orders && eventyard send orders hello"
fi
