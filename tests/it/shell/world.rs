//! What lies around a workspace and must stay as it is: files, secrets, sockets, processes, the machine's own settings.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::bench::SECRET;

/// Prepares `repo` in the workspace, with a nested repository and one that is a submodule.
pub(super) const REPOSITORY: &str = r#"
g() { git -c user.name=t -c user.email=t@t -c init.defaultBranch=main -c protocol.file.allow=always "$@"; }
g init -q repo; cd repo
echo one > file; g add file; g commit -qm first
g init -q inner; (cd inner; echo in > f; g add f; g commit -qm inner; rm -r .git/hooks)
g init -q ../library; (cd ../library; echo lib > l; g add l; g commit -qm library)
g submodule --quiet add ../library sub; g commit -qm sub
mkdir -p .vscode; echo '{}' > .vscode/settings.json
echo 'true' > .git/hooks/pre-push; chmod +x .git/hooks/pre-push
"#;

/// Files of a home that hold what a command must not learn.
const SECRETS: [&str; 12] = [
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".git-credentials",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".gnupg/private-keys-v1.d/key",
    ".bash_history",
    ".local/share/keyrings/login.keyring",
];

/// Paths of the workspace that commands may not change, or make when they are not there: programs outside the jail act on them.
const GUARDED: [&str; 25] = [
    "repo/.git/commondir",
    "repo/inner/.git/commondir",
    "repo/.git/config",
    "repo/.git/hooks",
    "repo/.git/hooks/pre-push",
    "repo/.git/hooks/post-commit",
    "repo/.git/hooks/pre-commit",
    "repo/.git/config.worktree",
    "repo/.git/modules/sub/config",
    "repo/.git/modules/sub/hooks/post-commit",
    "repo/inner/.git/config",
    "repo/inner/.git/hooks/post-commit",
    "repo/sub/.git",
    "repo/.vscode/settings.json",
    "repo/.vscode/tasks.json",
    "repo/lib/.vscode/tasks.json",
    "new/er/.envrc",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".mcp.json",
    ".envrc",
    ".bashrc",
    ".husky/pre-commit",
    ".cargo/config.toml",
    ".zeph/config.toml",
];

/// What is compared. Each part is a value, so that a difference shows itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sight {
    outside: BTreeMap<PathBuf, String>,
    secrets: BTreeMap<PathBuf, String>,
    guarded: BTreeMap<&'static str, String>,
    machine: BTreeMap<&'static str, String>,
}

/// The surroundings.
pub(super) struct World {
    pub(super) outside: PathBuf,
    work: PathBuf,
    home: PathBuf,
    /// Stands in the command lines of processes that must not survive.
    pub(super) token: String,
    pub(super) abstract_name: String,
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    unix: Vec<UnixListener>,
    victim: Child,
    path: String,
}

impl World {
    /// Furnishes `top` around `work` and `home`.
    #[expect(
        clippy::disallowed_methods,
        reason = "the victim of attacks is a process"
    )]
    pub(super) fn new(top: &Path, work: &Path, home: &Path) -> Self {
        let outside = top.join("outside");
        fs::create_dir_all(outside.join("deep/er")).unwrap();
        for name in ["canary", "deep/canary", "deep/er/canary"] {
            fs::write(outside.join(name), SECRET).unwrap();
        }
        for name in SECRETS {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, SECRET).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        // Several worlds of a test stand side by side.
        static N_WORLDS: AtomicU64 = AtomicU64::new(0);
        let n_worlds = N_WORLDS.fetch_add(1, Ordering::Relaxed);
        let token = 1_000_000_000 + u64::from(std::process::id()) * 1024 + n_worlds;
        let token = token.to_string();
        let abstract_name = format!("zeph-canary-{token}");
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let unix = vec![
            UnixListener::bind(outside.join("daemon.sock")).unwrap(),
            UnixListener::bind(work.join("daemon.sock")).unwrap(),
            UnixListener::bind_addr(&address).unwrap(),
        ];
        for name in [outside.join("daemon.sock"), work.join("daemon.sock")] {
            fs::set_permissions(name, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let world = Self {
            outside,
            work: work.to_path_buf(),
            home: home.to_path_buf(),
            token,
            abstract_name,
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            unix,
            victim: Command::new("/bin/sleep").arg("86400").spawn().unwrap(),
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
        };
        world.tcp.set_nonblocking(true).unwrap();
        world
            .tcp6
            .iter()
            .for_each(|it| it.set_nonblocking(true).unwrap());
        world.udp.set_nonblocking(true).unwrap();
        world
            .unix
            .iter()
            .for_each(|it| it.set_nonblocking(true).unwrap());
        world
    }

    /// The search path of the program.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Puts a directory of programs before the others.
    pub(super) fn prefer(&mut self, programs: &Path) {
        self.path = format!("{}:{}", programs.display(), self.path);
    }

    /// A port of the host that listens on IPv4; UDP is the next thing a command can only guess.
    pub(super) fn port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    pub(super) fn port6(&self) -> u16 {
        self.tcp6
            .as_ref()
            .map_or(1, |it| it.local_addr().unwrap().port())
    }

    /// A process of the host.
    pub(super) fn victim(&self) -> u32 {
        self.victim.id()
    }

    /// Looks at everything that must stay.
    pub(super) fn look(&self) -> Sight {
        // Git writes its settings anew without changing them.
        let guarded = GUARDED.map(|name| (name, timeless(&self.work.join(name))));
        let secrets = SECRETS.map(|name| (self.home.join(name), line(&self.home.join(name))));
        let mut outside = BTreeMap::new();
        describe(&self.outside, &mut outside);
        Sight {
            outside,
            secrets: secrets.into(),
            guarded: guarded.into(),
            machine: machine(),
        }
    }

    /// What is not as it was `before`, if anything.
    pub(super) fn difference(&mut self, before: &Sight) -> Option<String> {
        let now = self.look();
        let mut found = Vec::new();
        compare(&before.outside, &now.outside, &mut found);
        compare(&before.secrets, &now.secrets, &mut found);
        compare(&before.guarded, &now.guarded, &mut found);
        compare(&before.machine, &now.machine, &mut found);
        if self.victim.try_wait().unwrap().is_some() {
            found.push("a process of the host was ended".to_owned());
        }
        (!found.is_empty()).then(|| found.join("\n"))
    }

    /// Fails when anything is not as it was `before`.
    #[track_caller]
    pub(super) fn is_untouched(&mut self, before: &Sight, after: &str) {
        if let Some(difference) = self.difference(before) {
            panic!("{after}: something changed outside: {difference}");
        }
    }

    /// How often a process reached a socket of the host since the last look.
    pub(super) fn hits(&self) -> usize {
        let tcp = std::iter::once(&self.tcp).chain(&self.tcp6);
        let tcp = tcp.map(|it| taken(|| it.accept().map(drop)));
        let unix = self.unix.iter().map(|it| taken(|| it.accept().map(drop)));
        let udp = taken(|| self.udp.recv(&mut [0; 16]).map(drop));
        tcp.chain(unix).sum::<usize>() + udp
    }

    /// Fails when a process with the token in its command line is left; gives the kernel some time to take it away.
    #[track_caller]
    pub(super) fn nobody_is_left(&self, after: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let left = processes_with(&self.token);
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{after}: still there: {left:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a process with the token in its command line runs.
    #[track_caller]
    pub(super) fn somebody_is_there(&self, what: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while processes_with(&self.token).is_empty() {
            assert!(Instant::now() < deadline, "{what} never started");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.victim.kill());
        drop(self.victim.wait());
    }
}

/// How often `take` finds something before there is nothing left.
fn taken(mut take: impl FnMut() -> std::io::Result<()>) -> usize {
    let mut n = 0;
    loop {
        match take() {
            Ok(()) => n += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return n,
            Err(error) => panic!("a listener of the test failed: {error}"),
        }
    }
}

/// Command lines that hold `token`, but for those of test programs.
fn processes_with(token: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(bytes) = fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
        if line.contains(token) {
            found.push(line);
        }
    }
    found
}

/// Settings that hold for the whole machine.
fn machine() -> BTreeMap<&'static str, String> {
    let files = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/panic",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/net/ipv4/ip_forward",
    ];
    let mut found: BTreeMap<_, _> = files
        .map(|file| (file, fs::read_to_string(file).unwrap_or_default()))
        .into();
    for file in [
        "/etc/passwd",
        "/etc/hosts",
        "/etc/ld.so.preload",
        "/etc/crontab",
        "/usr/bin/env",
    ] {
        found.insert(file, line(Path::new(file)));
    }
    let trace = |name: &str| Path::new(name).exists().to_string();
    found.insert("/dev/shm/zeph-escaped", trace("/dev/shm/zeph-escaped"));
    found.insert("/tmp/zeph-escaped", trace("/tmp/zeph-escaped"));
    found.insert("/var/tmp/zeph-escaped", trace("/var/tmp/zeph-escaped"));
    found
}

fn describe(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    found.insert(path.to_path_buf(), line(path));
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            describe(&entry.unwrap().path(), found);
        }
    }
}

/// Kind, rights, owner, times, and a digest of the bytes.
fn line(path: &Path) -> String {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_dir() => {
            let times = (metadata.mtime(), metadata.mtime_nsec());
            format!("{}, written {times:?}", timeless(path))
        }
        // What a jail mounts over a directory's names leaves its time alone; new names do not.
        _ => timeless(path),
    }
}

/// The same without the times.
fn timeless(path: &Path) -> String {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return "absent".to_owned();
    };
    let (mode, owner) = (metadata.mode(), metadata.uid());
    if metadata.is_dir() {
        let names = fs::read_dir(path).map_or(0, Iterator::count);
        return format!("directory {mode:o} of {owner} with {names} names");
    }
    let bytes = match metadata.is_file() {
        true => fs::read(path).unwrap_or_default(),
        false => {
            fs::read_link(path).map_or(Vec::new(), |it| it.into_os_string().into_encoded_bytes())
        }
    };
    let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{mode:o} of {owner}, {} bytes, {digest:x}", metadata.len())
}

fn compare<K: Ord + std::fmt::Debug>(
    then: &BTreeMap<K, String>,
    now: &BTreeMap<K, String>,
    found: &mut Vec<String>,
) {
    for name in then
        .keys()
        .chain(now.keys().filter(|name| !then.contains_key(name)))
    {
        let (then, now) = (then.get(name), now.get(name));
        if then != now {
            found.push(format!("{name:?} was {then:?} and is {now:?}"));
        }
    }
}
