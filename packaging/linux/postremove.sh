#!/bin/sh
# After removing. Debian calls it with "remove", "purge" or "upgrade"; Red Hat with 0, or 1 for an
# upgrade. The data stays, also when the package is purged: events are not the package's to delete.
set -e
if [ "$1" = remove ] || [ "$1" = purge ] || [ "$1" = 0 ]; then
	if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
		systemctl daemon-reload
	fi
	if [ -d "${DPKG_ROOT:-}/var/lib/eventyard" ]; then
		echo "The yard's data is still in /var/lib/eventyard. To delete it: rm -r /var/lib/eventyard"
	fi
fi
