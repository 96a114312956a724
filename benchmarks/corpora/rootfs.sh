#!/bin/bash
# usage: rootfs.sh DEST SUITE PACKAGES - a Debian root file system by debootstrap (root, amd64), with what a live one has:
# locales, a user, devices, a fifo, a file capability, extended attributes, a hard link.
set -euo pipefail
dest=$1 suite=$2 packages=$3
debootstrap --variant=minbase --include="$packages" "$suite" "$dest"
umount "$dest/proc" "$dest/sys" 2> /dev/null || true
if [ -x "$dest/usr/sbin/locale-gen" ]; then
  printf '%s\n' 'en_US.UTF-8 UTF-8' 'de_DE.UTF-8 UTF-8' >> "$dest/etc/locale.gen"
  chroot "$dest" locale-gen > /dev/null
fi
chroot "$dest" useradd -m -s /bin/bash -u 1000 pi
[ -c "$dest/dev/null" ] || mknod -m 666 "$dest/dev/null" c 1 3
mknod -m 660 "$dest/dev/ram0" b 1 0 2> /dev/null || true
mkfifo -m 600 "$dest/run/initctl" 2> /dev/null || true
if [ -x "$dest/usr/bin/ping" ]; then setcap cap_net_raw+ep "$dest/usr/bin/ping" || true; fi
setfattr -n user.origin -v debootstrap "$dest/etc/hostname" || true
setfattr -n user.note -v 'a value with spaces' "$dest/home/pi" || true
ln "$dest/usr/bin/perl" "$dest/usr/bin/perl-hardlink" 2> /dev/null || true
rm -rf "$dest"/var/cache/apt/archives/*.deb "$dest"/var/lib/apt/lists/*
