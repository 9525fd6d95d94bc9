//! What a command must not do, and cannot.

use super::super::*;
use super::harness::Room;

/// Runs a command that must fail to change anything outside, and to print `hush`.
#[track_caller]
fn attack(room: &Room, script: &str) {
    let look = |folder: &Path| {
        room.host(&format!(
            "cd {} && find . -type f | sort | xargs -r cat; find .| sort",
            folder.display()
        ))
    };
    let before = look(&room.outside);
    let script = script.replace("OUT", &room.outside.display().to_string());
    let end = room.run(&script);
    assert_eq!(end.start, Start::Ran, "{script}: {end:#?}");
    assert!(!end.stdout.contains("hush"), "{script}: {end:#?}");
    assert_eq!(look(&room.outside), before, "{script}: {end:#?}");
}

#[test]
fn files_outside_stay_unseen_and_unchanged() {
    let room = Room::new();
    room.host("ln -s ../outside link; ln -s ../outside/secret slink");
    for script in [
        "cat OUT/secret",
        "echo x > OUT/new",
        "cat link/secret; cat slink; echo x > slink; echo x > link/new",
        "cat ../outside/secret; cd ..; cat outside/secret; ls",
        "cat /proc/self/root/OUT/secret; cat /proc/1/root/OUT/secret /proc/1/cwd/OUT/secret",
        "ln OUT/secret here; cat here",
        "mkdir -p OUT; echo x > OUT/secret",
        "for f in /proc/[0-9]*/fd/*; do cat $f/OUT/secret; done 2>/dev/null",
    ] {
        attack(&room, script);
    }
    room.check("cat /etc/shadow ~/.npmrc ~/.ssh/* /root/.bashrc 2>/dev/null | wc -c; ls /run /sys /var 2>/dev/null | grep -vxE 'tmp|lib'", "0\n/run:\n\n/var:\n");
    // What of it is shown depends on the packages of the machine.
    room.check(
        "ls /var/lib 2>/dev/null | grep -xE 'apt|dpkg|docker|systemd|postgresql' || true",
        "",
    );
}

#[test]
fn a_name_elsewhere_is_protected() {
    let room = Room::new();
    room.host("mkdir sub; ln ../outside/secret sub/same; echo x > own; ln own sub/own2");
    attack(
        &room,
        "echo evil > sub/same; sed -i s/h/e/ sub/same; rm -f sub/same; chmod 777 sub/same; mv sub s2",
    );
    room.check("echo y > own; cat sub/own2", "y\n");
}

#[test]
fn what_is_hidden_looks_empty() {
    let mut room = Room::new();
    room.host("mkdir -p a/state; echo hush > a/state/db; echo hush > a/key; echo open > a/open");
    room.policy.hidden = vec![room.work.join("a/state"), room.work.join("a/key")];
    room.policy.protected = vec![room.work.join("a/open")];
    room.check("cat a/key; ls a/state; cat a/open", "open\n");
    attack(
        &room,
        "echo x > a/key; echo x > a/state/db; rm -rf a/state a/key; mv a b; echo x > a/open; cat a/* a/state/* b/*",
    );
    assert_eq!(
        room.host("cat a/state/db a/key a/open"),
        "hush\nhush\nopen\n"
    );
}

#[test]
fn the_kernel_stays_as_it_is() {
    let room = Room::new();
    let look =
        "cat /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sys/kernel/hostname";
    let before = room.host(look);
    for script in [
        "echo '|/tmp/x' > /proc/sys/kernel/core_pattern",
        "echo 1 > /proc/sys/vm/swappiness",
        "mount -t tmpfs x /tmp; mount -o remount,rw /proc; umount /proc/sys; umount -l /",
        "unshare -r true; unshare -Ur mount -t proc proc /proc; hostname evil",
        "nsenter -t 1 -a id; chroot / id",
    ] {
        attack(&room, script);
    }
    assert_eq!(room.host(look), before);
    room.check("echo x > /proc/sys/kernel/core_pattern; echo $?; unshare -Ur true; echo $?; grep -h CapEff /proc/self/status", "1\n1\nCapEff:\t0000000000000000\n");
    room.check("for f in /proc/sysrq-trigger /proc/1/oom_score_adj /proc/self/oom_score_adj /proc/irq/default_smp_affinity; do test -e $f && (echo 1 > $f) 2>/dev/null && echo wrote $f; done; true", "");
}

#[test]
fn identities_do_not_leave_the_jail() {
    let room = Room::new();
    attack(
        &room,
        "cp /bin/true t && chmod 4755 t; chmod u+s t; install -m 6755 /bin/true t2; mknod dev c 1 3; python3 -c 'import os; os.open(\"t3\", os.O_CREAT|os.O_WRONLY, 0o4777)'",
    );
    assert_eq!(room.host("find . -perm /6000; find . -type c"), "");
    room.check(
        "mkfifo f && test -p f && chmod 1777 . && chmod 755 . && echo ok",
        "ok\n",
    );
}

#[test]
fn nothing_of_the_host_is_told() {
    let mut room = Room::new();
    let host = &mut room.policy.environment.host;
    host.insert("ZEPH_TEST_SECRET".to_owned(), "hush".to_owned());
    host.insert("AWS_SECRET_ACCESS_KEY".to_owned(), "hush".to_owned());
    for script in [
        "env; cat /proc/*/environ | tr '\\0' '\\n'",
        "cat /proc/*/cmdline | tr '\\0' '\\n'",
        "ps aux",
    ] {
        attack(&room, script);
    }
    // Nothing but the standard streams is open, and only this jail's processes are there.
    room.check("ls /proc/self/fd | wc -l; ls -d /proc/[0-9]* | wc -l | tr -d ' ' | xargs -I{} test {} -lt 9 && echo few", "4\nfew\n");
    room.check("cat /proc/1/environ 2>&1 >/dev/null | grep -c denied; cat /etc/passwd | grep -c : | xargs -I{} test {} -lt 4 && echo few", "1\nfew\n");
}

#[test]
fn the_network_is_ones_own() {
    let room = Room::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    room.check(&format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; echo $?; ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev"), "1\n1\n");
    room.check(
        "python3 - <<'E'\nimport socket\nfor f,p in [(40,0),(38,0),(17,0),(16,9),(16,0),(2,0)]:\n  try: socket.socket(f,socket.SOCK_DGRAM if f==2 else socket.SOCK_RAW if f!=40 else 1,p); print(f,p,'made')\n  except OSError as e: print(f,p,e.errno)\nE",
        "40 0 1\n38 0 1\n17 0 1\n16 9 1\n16 0 made\n2 0 made\n",
    );
}

#[test]
fn a_socket_of_the_host_cannot_be_reached() {
    let room = Room::new();
    let connect = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"daemon.sock\")' 2>&1 | tail -1 | cut -d: -f1";
    let path = room.work.join("daemon.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    room.check(connect, "ConnectionRefusedError\n");
    room.check("rm -f daemon.sock 2>/dev/null; mv daemon.sock a 2>/dev/null; ln daemon.sock b 2>/dev/null; ls", "daemon.sock\n");
    std::fs::remove_file(&path).unwrap();
    drop(listener);
}

/// Where a server of the host listens, where one has left its socket, and where there is too much to be looked through.
#[test]
fn commands_make_sockets_of_their_own() {
    let bind = "python3 -c 'import socket; a = socket.socket(socket.AF_UNIX); a.bind(\"own.sock\"); a.listen(); b = socket.socket(socket.AF_UNIX); b.connect(\"own.sock\"); print(\"made\")'; rm own.sock";
    let room = Room::new();
    let listen = |name: &str| std::os::unix::net::UnixListener::bind(room.work.join(name)).unwrap();
    drop(listen("left.sock"));
    let _listener = listen("daemon.sock");
    room.check(bind, "made\n");
    room.check("rm left.sock && ls", "daemon.sock\n");
    room.host("mkdir -p full && cd full && seq 20100 | xargs touch");
    let _unseen = listen("full/unseen.sock");
    room.check(bind, "made\n");
    room.check("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"full/unseen.sock\")' 2>&1 | tail -1 | cut -d: -f1", "ConnectionRefusedError\n");
}

#[test]
fn limits_hold() {
    let room = Room::new();
    room.check("dd if=/dev/zero of=/tmp/big bs=1M count=200 2>&1 | grep -c 'No space'; dd if=/dev/zero of=/dev/shm/big bs=1M count=200 2>&1 | grep -c 'No space'", "1\n1\n");
    room.check("ulimit -c; ulimit -n; echo x > /etc/x; echo x > /x; echo x > /dev/x; ls /x /dev/x /etc/x 2>/dev/null; true", "0\n1024\n");
    let end = room.run("python3 -c \"\nimport os,time\nn=0\ntry:\n  for i in range(400):\n    if os.fork()==0: time.sleep(60)\n    n+=1\nexcept OSError: pass\nprint(n<130)\nos.kill(-1,9)\"");
    assert_eq!(end.stdout, "True\n", "{end:#?}");
    let end = room.run("python3 -c 'x = bytearray(3 << 30); print(len(x))'; echo ended");
    assert!(!end.stdout.contains("3221225472"), "{end:#?}");
    room.check("echo next", "next\n");
}

#[test]
fn a_place_that_is_exchanged_before_the_start_stops_it() {
    for exchange in [
        "mv .git x && ln -s ../outside .git",
        "mv .git x && mkdir .git",
        "mv sub y && mkdir -p sub && ln -s ../../outside sub/.git",
    ] {
        let room = Room::new();
        room.host(
            "git init -q . && git init -q sub && mkdir ../outside/hooks && touch ../outside/config",
        );
        let variables = BTreeMap::new();
        let arguments = [
            "-c".into(),
            "echo x > .git/new; echo x > sub/.git/new".into(),
        ];
        let job = Job {
            program: Path::new("/bin/bash"),
            arguments: &arguments,
            directory: &room.work,
            variables: &variables,
            files: Vec::new(),
            rc: None,
            made: None,
        };
        let prepared = room.jail().prepare(job).unwrap();
        room.host(exchange);
        let end = super::harness::finish(prepared);
        assert!(
            matches!(end.start, Start::Refused { .. }),
            "{exchange}: {end:#?}"
        );
        assert_eq!(
            room.host("ls ../outside"),
            "config\nhooks\nsecret\n",
            "{exchange}"
        );
    }
}

#[test]
fn grants_are_given_and_no_more() {
    let mut room = Room::new();
    room.host("mkdir ../read ../write && echo r > ../read/f");
    let (read, write) = (
        room.work.with_file_name("read"),
        room.work.with_file_name("write"),
    );
    room.policy.allow_read = Some(vec![read.clone()]);
    room.policy.allow_write = Some(vec![room.work.clone(), write.clone()]);
    room.check(
        &format!("cat {}/f; echo w > {}/f", read.display(), write.display()),
        "r\n",
    );
    let end = room.run(&format!("echo evil > {}/f || rm {0}/f", read.display()));
    assert_ne!(end.code, Some(0), "{end:#?}");
    assert_eq!(room.host("cat ../read/f ../write/f"), "r\nw\n");
    room.policy.network = Network::Open;
    room.check(
        "test -s /etc/resolv.conf && grep -c lo: /proc/net/dev; echo ok",
        "1\nok\n",
    );
}
