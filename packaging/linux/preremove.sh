#!/bin/sh
# Before removing. Debian calls it with "remove", or "upgrade"; Red Hat with 0, or 1 for an upgrade,
# through which the yard goes on running.
set -e
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
		systemctl disable --now eventyard.service
	fi
fi
