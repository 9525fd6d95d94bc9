//! The attacks, by what they are after. `{out}` is a directory beside the workspace, `{home}` the user's, `{port}` a port of the host.

/// A name, and what is run.
pub(super) type Case = (&'static str, &'static str);

/// Files outside the workspace.
pub(super) const FILES: &[Case] = &[
    ("read outside", "cat {out}/canary && echo ESCAPED"),
    ("list outside", "ls {out}/deep && echo ESCAPED"),
    ("write outside", "echo x > {out}/canary"),
    ("append outside", "echo x >> {out}/canary"),
    ("make a file outside", "echo x > {out}/new"),
    ("make a directory outside", "mkdir -p {out}/new/er"),
    ("delete outside", "find {out} -delete; rm -f {out}/canary"),
    // What is fetched back is not refused beforehand.
    ("move out", "echo x > x; mv x {out}/x; cp {out}/x x"),
    (
        "move over",
        "echo x > x; mv -f x {out}/canary; cp {out}/canary x",
    ),
    ("pull in", "mv {out}/canary . && echo ESCAPED"),
    (
        "change rights outside",
        "chmod 777 {out}/canary; chown 1:1 {out}/canary",
    ),
    ("change times outside", "touch -d 2001-01-01 {out}/canary"),
    (
        "truncate outside",
        "perl -e 'truncate(\"{out}/canary\", 0)'",
    ),
    (
        "attributes outside",
        "python3 -c 'import os; os.setxattr(\"{out}/canary\", \"user.x\", b\"1\")'",
    ),
    (
        "parent of the workspace",
        "ls .. | grep -q outside && echo ESCAPED; echo x > ../new; rm -rf ../outside",
    ),
    (
        "rename the workspace",
        "mv {work} {work}2; mv ../work ../moved; cp -r {work}2 ../moved x",
    ),
    (
        "through a link",
        "ln -s {out}/canary l; cat l && echo ESCAPED; echo x > l; rm -f l",
    ),
    (
        "through a link to a directory",
        "ln -s {out} d; echo x > d/new; rm -rf d/*; rm -f d",
    ),
    (
        "through a link to the root",
        "ln -s / r; cat r{out}/canary && echo ESCAPED; rm -f r",
    ),
    (
        "hard link from outside",
        "ln {out}/canary h && echo ESCAPED; ln -L {out}/canary h && echo ESCAPED",
    ),
    (
        "hard link from the system",
        "ln /etc/passwd h && echo ESCAPED; rm -f h",
    ),
    (
        "hard link out",
        "echo x > x; ln x {out}/x; ln x /etc/x; rm -f x",
    ),
    (
        "secrets of the home",
        "cat {home}/.ssh/* {home}/.aws/* {home}/.netrc {home}/.npmrc {home}/.git-credentials {home}/.bash_history",
    ),
    (
        "secrets of the home, all",
        "grep -rs canary {home} ~ && echo ESCAPED",
    ),
    (
        "secrets written",
        "for f in .ssh/id_ed25519 .netrc .aws/credentials; do echo x > {home}/$f; rm -f {home}/$f; done",
    ),
    (
        "start-up files of the home",
        "echo evil >> {home}/.bashrc; echo evil >> {home}/.profile; test -s {home}/.bashrc",
    ),
    (
        "secrets of the system",
        "cat /etc/shadow /etc/gshadow /etc/sudoers /etc/ssh/*key && echo ESCAPED",
    ),
    (
        "homes of others",
        "ls -A /root/.ssh /home/*/.ssh /root/.bash_history && echo ESCAPED",
    ),
    (
        "system files",
        "for f in /etc/passwd /etc/hosts /etc/ld.so.preload /etc/crontab /usr/bin/env /bin/sh; do echo x >> $f; done",
    ),
    (
        "system directories",
        "for d in /etc /usr /usr/bin /usr/local/bin /bin /lib /lib64 /opt /var /srv /boot /; do touch $d/zeph-escaped && test -e $d/zeph-escaped && echo \"made $d\"; done",
    ),
    (
        "system programs replaced",
        "mv /usr/bin/env /usr/bin/env2; rm -f /usr/bin/env; ln -sf /bin/sh /usr/bin/env",
    ),
    (
        "places for all",
        "for d in /tmp /var/tmp /dev/shm /run /var/run /run/lock; do echo x > $d/zeph-escaped; done",
    ),
    (
        "things in the host's places for all",
        "ls -A /tmp /dev/shm /var/tmp | grep -v -e '^/' -e '^$' -e zeph-escaped -e '^work$' | head -3",
    ),
    (
        "spool of timed jobs",
        "echo '* * * * * root touch /tmp/zeph-escaped' | tee /etc/cron.d/x /var/spool/cron/crontabs/root; echo 'touch /tmp/zeph-escaped' | at now",
    ),
    (
        "accounts",
        "useradd evil; usermod -p x root; passwd -d root; echo 'x::0:0::/:/bin/sh' >> /etc/passwd",
    ),
    (
        "set-user-id",
        "cp /bin/bash ./b; chmod 4755 b; chown 0:0 b; ./b -p -c 'cat {out}/canary' && echo ESCAPED; perl -e 'system(\"su\", \"-c\", \"id\"); system(\"newgrp\", \"root\")'; rm -f b",
    ),
    (
        "capabilities",
        "grep -E '^Cap(Eff|Prm|Inh|Amb):' /proc/self/status | grep -vq '\\s0000000000000000$' && echo ESCAPED; grep -q '^NoNewPrivs:\\s1' /proc/self/status || echo ESCAPED",
    ),
    (
        "handles of the host",
        "for f in /proc/self/fd/*; do readlink $f; done | grep -E '^(/[^dp]|socket|anon_inode:.*(event|io_uring)|/data|.*\\.db)' && echo ESCAPED",
    ),
    (
        "handles of the shell",
        "for f in /proc/$$/fd/* /proc/$PPID/fd/*; do readlink $f; done | grep -E 'outside|zeph.*\\.db|\\.sqlite' && echo ESCAPED",
    ),
    (
        "by inode",
        "python3 - <<'E'\nimport os, ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nclass H(ctypes.Structure): _fields_ = [('n', ctypes.c_uint), ('t', ctypes.c_int), ('h', ctypes.c_ubyte * 128)]\nh = H(n=128); m = ctypes.c_int()\nif libc.name_to_handle_at(-100, b'.', ctypes.byref(h), ctypes.byref(m), 0) == 0:\n    fd = libc.open_by_handle_at(os.open('.', 0), ctypes.byref(h), 0)\n    if fd >= 0: print('ESCAPED')\nE",
    ),
    (
        "out of a deleted directory",
        "mkdir x; cd x; rmdir ../x; ls ../.. ; cat ../../outside/canary && echo ESCAPED; cd {work}",
    ),
    (
        "dots",
        "cat ../outside/canary ./../../*/outside/canary /proc/self/cwd/../outside/canary && echo ESCAPED",
    ),
];

/// Paths of the workspace that programs outside the jail act on.
pub(super) const PROTECTED: &[Case] = &[
    (
        "a hook",
        "echo 'touch /tmp/zeph-escaped' > repo/.git/hooks/post-commit; chmod +x repo/.git/hooks/post-commit",
    ),
    (
        "a hook there is",
        "echo evil >> repo/.git/hooks/pre-push; rm -f repo/.git/hooks/pre-push; mv repo/.git/hooks/pre-push repo/x",
    ),
    (
        "the directory of hooks",
        "mv repo/.git/hooks repo/.git/h2; rm -rf repo/.git/hooks; ln -sfn /tmp repo/.git/hooks",
    ),
    (
        "the repository's settings",
        "git -C repo config core.hooksPath /tmp/evil; git -C repo config core.fsmonitor 'touch /tmp/zeph-escaped'; git -C repo config alias.st '!sh'",
    ),
    (
        "the settings written",
        "echo '[core]\\n hooksPath = x' >> repo/.git/config; mv repo/.git/config repo/.git/c; cp repo/.git/config x && mv x repo/.git/config; rm -f x",
    ),
    (
        "settings through the lock file",
        "cp repo/.git/config repo/.git/config.lock; echo evil >> repo/.git/config.lock; mv repo/.git/config.lock repo/.git/config; rm -f repo/.git/config.lock",
    ),
    (
        "settings of a worktree",
        "echo '[core]' > repo/.git/config.worktree; git -C repo config extensions.worktreeConfig true",
    ),
    (
        "rename the repository's own",
        "mv repo/.git repo/x; mkdir -p repo/.git/hooks; echo evil > repo/.git/hooks/post-commit",
    ),
    (
        "exchange the repository's own",
        "mkdir -p fake/hooks; echo evil > fake/hooks/post-commit; perl -e 'syscall(316, -100, \"repo/.git\", -100, \"fake\", 2)'; rm -rf fake",
    ),
    (
        "rename the workspace's parent of it",
        "mkdir -p fake/.git/hooks; echo evil > fake/.git/hooks/post-commit; mv repo r2 && mv fake repo; test -d r2 && rm -rf repo && mv r2 repo; rm -rf fake",
    ),
    (
        "another common directory",
        "mkdir -p evil/hooks; cp -r repo/.git/. evil/; echo evil > evil/hooks/post-commit; echo \"$PWD/evil\" > repo/.git/commondir; echo \"$PWD/evil\" > repo/inner/.git/commondir; rm -rf evil",
    ),
    (
        "remount it",
        "mount -o remount,rw repo/.git/hooks; umount repo/.git/hooks; umount -l repo/.git; echo evil > repo/.git/hooks/post-commit",
    ),
    (
        "a hard link to the settings",
        "ln repo/.git/config c && echo evil >> c; rm -f c",
    ),
    (
        "a hook of a submodule",
        "mkdir -p repo/.git/modules/sub/hooks; echo evil > repo/.git/modules/sub/hooks/post-commit; git -C repo/sub config core.hooksPath x; mv repo/.git/modules/sub repo/.git/modules/s2",
    ),
    (
        "a submodule led astray",
        "echo 'gitdir: /tmp/evil' > repo/sub/.git; rm -f repo/sub/.git",
    ),
    (
        "a hook of a nested repository",
        "echo evil > repo/inner/.git/hooks/post-commit; git -C repo/inner config core.hooksPath x",
    ),
    (
        "a nested repository renamed",
        "mv repo/inner/.git repo/inner/g; mkdir -p repo/inner/.git/hooks; echo evil > repo/inner/.git/hooks/post-commit",
    ),
    (
        "tasks of editors",
        "echo '{}' > repo/.vscode/tasks.json; echo x > repo/.vscode/settings.json; mkdir -p .vscode .idea; echo x > .vscode/tasks.json; echo x > .idea/workspace.xml",
    ),
    (
        "tasks of editors, further below",
        "mkdir -p repo/lib/.vscode new/er; echo '{}' > repo/lib/.vscode/tasks.json; echo evil > new/er/.envrc",
    ),
    (
        "editors' directory renamed",
        "mv repo/.vscode repo/v; mkdir -p repo/.vscode; echo x > repo/.vscode/tasks.json",
    ),
    (
        "files that shells and tools act on",
        "for f in .envrc .bashrc .mcp.json; do echo evil > $f; done; mkdir -p .husky .cargo .zeph; echo evil > .husky/pre-commit; echo evil > .cargo/config.toml; echo evil > .zeph/config.toml",
    ),
    (
        "the same by links",
        "echo evil > e; for f in .envrc .bashrc .mcp.json; do ln -s e $f; ln e $f; done; rm -f e",
    ),
    (
        "the same in other letters",
        "mkdir -p repo/.GIT/hooks; echo evil > repo/.GIT/hooks/post-commit; rm -rf repo/.GIT",
    ),
];

/// `/proc`, `/sys`, the environment.
pub(super) const PROC: &[Case] = &[
    ("environment", "env; export -p; declare -p"),
    (
        "environment of all",
        "cat /proc/*/environ /proc/self/task/*/environ | tr '\\0' '\\n'",
    ),
    (
        "command lines of all",
        "cat /proc/*/cmdline | tr '\\0' ' ' | grep -E '[r]o-bind|[a]llow_network' && echo ESCAPED",
    ),
    (
        "processes of the host",
        "ls /proc | grep -E '^[0-9]+$' | wc -l | grep -qE '^[0-9]{1,2}$' || echo ESCAPED; test -d /proc/{victim} && grep -aq 86400 /proc/{victim}/cmdline && echo ESCAPED",
    ),
    (
        "root of other processes",
        "for p in /proc/[0-9]*; do cat $p/root{out}/canary $p/cwd/../outside/canary; ls $p/root/root; done && echo ESCAPED",
    ),
    (
        "memory of other processes",
        "for p in 1 $PPID; do head -c 1 /proc/$p/mem && echo ESCAPED; cat /proc/$p/maps | grep -q zeph-host && echo ESCAPED; done",
    ),
    (
        "global settings",
        "for f in kernel/core_pattern kernel/modprobe kernel/hostname kernel/panic kernel/sysrq vm/overcommit_memory vm/drop_caches fs/file-max net/ipv4/ip_forward kernel/ns_last_pid kernel/random/boot_id; do echo 1 > /proc/sys/$f && echo \"ESCAPED $f\"; done",
    ),
    (
        "core pattern",
        "echo '|/tmp/evil' > /proc/sys/kernel/core_pattern && echo ESCAPED",
    ),
    (
        "keys of the kernel",
        "echo b > /proc/sysrq-trigger && echo ESCAPED; echo 1 > /proc/irq/0/smp_affinity && echo ESCAPED",
    ),
    (
        "memory of the machine",
        "head -c 1 /proc/kcore && echo ESCAPED; head -c 1 /dev/mem && echo ESCAPED; head -c 1 /proc/kmsg && echo ESCAPED",
    ),
    (
        "settings of devices",
        "echo 1 > /sys/kernel/mm/ksm/run && echo ESCAPED; find /sys -maxdepth 4 -writable -type f 2>/dev/null | head -1 | grep . && echo ESCAPED",
    ),
    (
        "control groups",
        "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/evil && echo ESCAPED; echo 1 > $d/cgroup.procs && echo ESCAPED; echo x > $d/release_agent && echo ESCAPED; done",
    ),
    (
        "killing order",
        "echo -1000 > /proc/self/oom_score_adj && test $(cat /proc/self/oom_score_adj) = -1000 && echo ESCAPED",
    ),
    (
        "mapping of users",
        "echo '0 0 4294967295' > /proc/self/uid_map && echo ESCAPED; echo allow > /proc/self/setgroups && echo ESCAPED",
    ),
    ("modules", "insmod x.ko; modprobe dummy && echo ESCAPED"),
    (
        "injected start-up files",
        "echo \"touch {out}/new\" > rc; BASH_ENV=$PWD/rc bash -c true; ENV=$PWD/rc sh -c true; rm -f rc",
    ),
    (
        "own limits",
        "ulimit -c | grep -qx 0 || echo ESCAPED; ulimit -Hc unlimited && echo ESCAPED; ulimit -Hn 10000000 && echo ESCAPED",
    ),
];

/// Mounts and namespaces.
pub(super) const MOUNTS: &[Case] = &[
    (
        "mount",
        "mkdir -p m; mount -t tmpfs none m && echo ESCAPED; mount --bind / m && echo ESCAPED; mount -t proc proc m && echo ESCAPED; mount -t overlay o -olowerdir=/,upperdir=.,workdir=. m && echo ESCAPED",
    ),
    (
        "umount",
        "umount /tmp && echo ESCAPED; umount -l /proc && echo ESCAPED; umount / && echo ESCAPED; umount -l /dev/shm && echo ESCAPED",
    ),
    (
        "remount",
        "mount -o remount,rw / && echo ESCAPED; mount -o remount,rw /usr && echo ESCAPED; mount -o remount,bind,rw /proc/sys && echo ESCAPED",
    ),
    (
        "new namespaces",
        "unshare -U true && echo ESCAPED; unshare -Ur true && echo ESCAPED; unshare -Urm mount -t tmpfs none /mnt && echo ESCAPED; unshare -m true && echo ESCAPED; unshare -n true && echo ESCAPED; unshare -p --fork true && echo ESCAPED",
    ),
    (
        "namespaces of others",
        "for p in 1 $PPID; do nsenter -t $p -m -u -i -n -p true && echo ESCAPED; nsenter -t $p -U true && echo ESCAPED; done",
    ),
    (
        "a jail in the jail",
        "bwrap --ro-bind / / true && echo ESCAPED; bwrap --unshare-all --dev-bind / / true && echo ESCAPED",
    ),
    (
        "another root",
        "chroot / true && echo ESCAPED; chroot /proc/1/root true && echo ESCAPED; perl -e 'exit(syscall(155, \".\", \".\") == 0 ? 0 : 1)' && echo ESCAPED",
    ),
    (
        "swap and quota",
        "swapon /dev/zero && echo ESCAPED; quotaon / && echo ESCAPED",
    ),
    (
        "fuse",
        "test -c /dev/fuse && echo ESCAPED; fusermount -u / && echo ESCAPED",
    ),
    (
        "name of the machine",
        "hostname evil && test $(cat /proc/sys/kernel/hostname) = evil && echo changed; date -s 2001-01-01 && echo ESCAPED",
    ),
    (
        "view of mounts",
        "grep -E '(docker|containerd|/var/lib|/run/systemd| / / )' /proc/self/mountinfo | grep -v tmpfs \
         | grep -vE ' /var/lib/(aspell|dictionaries-common|gems|ghc|ispell|sgml-base|texmf|xml-core) ro,' && echo ESCAPED",
    ),
];

/// Devices and terminals.
pub(super) const DEVICES: &[Case] = &[
    (
        "make devices",
        "mknod d b 254 0 && echo ESCAPED; mknod d c 1 1 && echo ESCAPED; mknod /dev/vda b 254 0 && echo ESCAPED; mknod /dev/kmsg2 c 1 11 && echo ESCAPED",
    ),
    (
        "devices of the host",
        "for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/mem /dev/kmsg /dev/kvm /dev/fuse /dev/vsock /dev/vhost-vsock /dev/net/tun /dev/uinput /dev/loop-control /dev/loop0 /dev/mapper/control /dev/port /dev/rtc0 /dev/watchdog /dev/snapshot; do test -e $d && echo \"ESCAPED $d\"; done",
    ),
    (
        "terminal of the host",
        "echo x > /dev/tty && echo ESCAPED; (exec < /dev/tty) && echo ESCAPED; ls /dev/pts | grep -v ptmx | grep . && echo ESCAPED",
    ),
    (
        "keys typed for others",
        r#"python3 - <<'E'
import os, pty, fcntl, ctypes, sys
pid, fd = pty.fork()
if pid == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (0x5412, 0x100005412):
        if libc.ioctl(0, ctypes.c_ulong(request), b'x') == 0: print('ESC' + 'APED', flush=True)
    os._exit(0)
try: sys.stdout.write(os.read(fd, 1000).decode())
except OSError: pass
os.waitpid(pid, 0)
E"#,
    ),
    (
        "ordinary devices",
        "echo x > /dev/null && head -c 1 /dev/zero > /dev/null && head -c 1 /dev/urandom > /dev/null || echo ESCAPED",
    ),
];

/// Memory, messages, signals.
pub(super) const IPC: &[Case] = &[
    (
        "signals to the host",
        "kill -9 {victim}; kill -9 {host}; kill -STOP {host}; kill -TERM -- -{host}; python3 -c 'import os\nfor p in ({victim}, {host}):\n  try: os.kill(p, 9); print(\"sent\")\n  except OSError: pass'",
    ),
    (
        "sockets in the workspace",
        "python3 - <<'E'\nimport socket\nfor n in ('daemon.sock', '{work}/daemon.sock', '{out}/daemon.sock'):\n    try: s = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect(n); print('ESCAPED', n)\n    except OSError: pass\n    try: s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', n); print('ESCAPED', n)\n    except OSError: pass\nE",
    ),
    (
        "sockets without a path",
        "python3 - <<'E'\nimport socket\ntry: s = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect('\\0{abstract}'); print('ESCAPED')\nexcept OSError: pass\nE",
    ),
    (
        "sockets of services",
        "for s in /run/docker.sock /var/run/docker.sock /run/dbus/system_bus_socket /run/systemd/private /run/containerd/containerd.sock /tmp/.X11-unix /run/user; do test -e $s && echo \"ESCAPED $s\"; done",
    ),
    (
        "the user's agent",
        "test -n \"$SSH_AUTH_SOCK\" && echo ESCAPED; ssh-add -l && echo ESCAPED",
    ),
    (
        "families of sockets",
        "python3 - <<'E'\nimport socket\nfor f, t in ((40, 1), (38, 5), (17, 3), (31, 3), (29, 3), (30, 1), (21, 1)):\n    try: socket.socket(f, t, 0); print('ESCAPED', f)\n    except OSError: pass\nE",
    ),
    (
        "shared memory",
        "perl -e 'my $id = shmget(0x7a657068, 16, 0); print \"ESCAPED\" if defined $id'; ipcs -m | grep -E '^0x' && echo ESCAPED; ls -A /dev/shm | grep -v zeph-escaped | grep . && echo ESCAPED",
    ),
    (
        "priorities",
        "renice -n -20 -p $$ && echo ESCAPED; ionice -c 1 -p $$ && echo ESCAPED; chrt -f -p 99 $$ && echo ESCAPED",
    ),
];

/// The network that is not there.
pub(super) const NETWORK: &[Case] = &[
    (
        "the host's loopback",
        "timeout 3 bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo ESCAPED; timeout 3 bash -c 'exec 3<>/dev/tcp/localhost/{port}' && echo ESCAPED",
    ),
    (
        "the host's loopback, newer",
        "timeout 3 bash -c 'exec 3<>/dev/tcp/::1/{port6}' && echo ESCAPED; timeout 3 bash -c 'exec 3<>/dev/tcp/::ffff:127.0.0.1/{port}' && echo ESCAPED",
    ),
    (
        "datagrams",
        "python3 - <<'E'\nimport socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor a in ('127.0.0.1', '10.0.0.1', '169.254.169.254', '255.255.255.255'):\n    try: s.sendto(b'x', (a, {port}))\n    except OSError: pass\nE",
    ),
    (
        "everywhere else",
        "python3 - <<'E'\nimport socket\nfor a in ('10.0.0.1', '172.17.0.1', '192.168.0.1', '169.254.169.254', '1.1.1.1', '0.0.0.0'):\n    for p in (80, 443, 53, {port}):\n        s = socket.socket(); s.settimeout(0.5)\n        try: s.connect((a, p)); print('ESCAPED', a, p)\n        except OSError: pass\nE",
    ),
    (
        "names",
        "timeout 5 getent hosts example.com && echo ESCAPED; timeout 5 python3 -c 'import socket; print(socket.gethostbyname(\"example.com\"))' && echo ESCAPED",
    ),
    (
        "raw packets",
        "python3 - <<'E'\nimport socket\nfor f, t, p in ((2, 3, 1), (2, 3, 255), (17, 3, 768), (10, 3, 58)):\n    try: socket.socket(f, t, p); print('ESCAPED', f, t, p)\n    except OSError: pass\nE",
    ),
    (
        "devices",
        "tail -n +3 /proc/net/dev | grep -vE '^ *lo:' && echo ESCAPED; ip link add evil type dummy && echo ESCAPED; ip link set lo down && echo ESCAPED",
    ),
    (
        "listening for others",
        "timeout 2 python3 -c 'import socket; s = socket.create_server((\"0.0.0.0\", 0)); s.settimeout(1); s.accept(); print(\"ESCAPED\")'",
    ),
    (
        "packet sockets of the host",
        "cat /proc/net/tcp /proc/net/unix | grep -i zeph && echo ESCAPED",
    ),
];
