# Runs one container of a pod as a cluster would, without a container engine: a root of its own that cannot be written, an id that no user has, no
# capability, a network and processes of its own, and the volumes of the pod at their places. The checkout is the image's /app. Needs root.
# usage: unshare --mount --net --pid --fork --kill-child sh container.sh ROOT APP UID MOUNTS [NAME=VALUE]... PROGRAM [ARGUMENT]...
# PROC_OPTIONS restricts what it sees of processes and of the kernel. MOUNTS is a file with a line for each volume: ro or rw, its folder, its place.
set -eu
root=$1 app=$2 uid=$3 mounts=$4
shift 4

mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs "$root"
mkdir -p "$root/usr" "$root/proc" "$root/dev" "$root/etc" "$root/app" "$root/run" "$root/var"
for link in bin sbin lib lib64; do cp -P "/$link" "$root/"; done
mount --rbind /usr "$root/usr"
mount --rbind /dev "$root/dev"
mount -t proc -o "${PROC_OPTIONS:-defaults}" proc "$root/proc"
mount --bind "$app" "$root/app"
mount -o remount,bind,ro "$root/app"
printf 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n' >"$root/etc/passwd"
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
while read -r way folder place; do
  mkdir -p "$root$place"
  mount --bind "$folder" "$root$place"
  if [ "$way" = ro ]; then mount -o remount,bind,ro "$root$place"; fi
done <"$mounts"
mount -o remount,ro "$root"
ip link set lo up
exec chroot "$root" /usr/bin/env -i -C /app PATH=/usr/local/bin:/usr/bin:/bin NODE_ENV=production /usr/bin/setpriv "--reuid=$uid" --regid=0 --clear-groups \
  --no-new-privs --bounding-set=-all --inh-caps=-all /usr/bin/env "$@"
