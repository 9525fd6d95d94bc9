//! A PostgreSQL of the tests: one for all of a run, started by the first that needs it and gone with the run.
//!
//! It needs nothing but the standard library, so that tests of other crates can include it.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The user of the database.
pub(crate) const USER: &str = "zeph";

/// The user of the machine that a server runs as: it refuses to run as root.
const SYSTEM_USERS: [&str; 2] = ["postgres", "nobody"];

/// How long a server may take to start.
const START: Duration = Duration::from_secs(60);

/// Settings of a server whose data nobody misses.
const SETTINGS: &str = "
fsync = off
full_page_writes = off
max_connections = 400
shared_buffers = 64MB
wal_level = minimal
max_wal_senders = 0
log_min_messages = warning
";

/// A running server.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
}

/// A schema of its own on the server.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(crate) server: Server,
    pub(crate) name: String,
}

impl Server {
    /// The server of this run; none, with a printed reason, where there is no PostgreSQL.
    pub(crate) fn of_run() -> Option<Self> {
        programs()?;
        let run = std::os::unix::process::parent_id();
        let folder = std::env::temp_dir().join(format!("zeph-postgres-{run}"));
        let lock = File::create(folder.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        let known = fs::read_to_string(folder.join("port"));
        if let Some(port) = known.ok().and_then(|port| port.trim().parse().ok()) {
            let server = Self { folder, port };
            if server.is_ready() {
                return Some(server);
            }
            let _gone = fs::remove_dir_all(&server.folder);
            return Some(Self::start(&server.folder, run));
        }
        Some(Self::start(&folder, run))
    }

    /// A server of one test, which may break it; it ends with the process of the test.
    pub(crate) fn of_test(folder: &Path, settings: &str) -> Self {
        let server = Self {
            folder: folder.to_owned(),
            port: free_port(),
        };
        server.create(settings);
        server.run(std::process::id());
        server
    }

    /// Starts a server with its data in `folder`, which ends with the process `owner`.
    pub(crate) fn start(folder: &Path, owner: u32) -> Self {
        let server = Self {
            folder: folder.to_owned(),
            port: free_port(),
        };
        server.create("");
        server.run(owner);
        fs::write(folder.join("port"), server.port.to_string()).unwrap();
        server
    }

    /// Makes the files of a server that is not running.
    pub(crate) fn create(&self, more_settings: &str) {
        fs::create_dir_all(&self.folder).unwrap();
        if let Some(user) = system_user() {
            run(Command::new("chown").arg(user).arg(&self.folder));
        }
        let data = self.data();
        run(as_user(programs().unwrap().join("initdb"))
            .arg("-D")
            .arg(&data)
            .args(["-U", USER, "-A", "trust", "-E", "UTF8"])
            .args(["--locale=C", "--no-sync"]));
        let path = data.join("postgresql.conf");
        let own = fs::read_to_string(&path).unwrap();
        let place = format!(
            "port = {}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\n",
            self.port,
            self.folder.display()
        );
        fs::write(path, format!("{own}{SETTINGS}{place}{more_settings}")).unwrap();
    }

    /// Starts it and waits until it answers; it ends when the process `owner` does.
    #[expect(
        clippy::zombie_processes,
        reason = "the watcher outlives the process that starts it"
    )]
    pub(crate) fn run(&self, owner: u32) {
        const WATCH: &str = r#"
            "$1" -D "$2" >"$3/log" 2>&1 &
            server=$!
            while kill -0 $server 2>/dev/null && ps -p "$4" >/dev/null; do sleep 0.5; done
            kill -QUIT $server 2>/dev/null; wait $server
            # A test starts its own again.
            ps -p "$4" >/dev/null || rm -rf "$3" "$3.lock""#;
        let mut watcher = as_user("setsid".into());
        watcher
            .args(["sh", "-c", WATCH, "sh"])
            .arg(programs().unwrap().join("postgres"))
            .arg(self.data())
            .arg(&self.folder)
            .arg(owner.to_string());
        for stream in [Command::stdin, Command::stdout, Command::stderr] {
            stream(&mut watcher, Stdio::null());
        }
        watcher.spawn().unwrap();
        self.wait();
    }

    /// Waits until it answers.
    pub(crate) fn wait(&self) {
        let started = Instant::now();
        while !self.is_ready() {
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(started.elapsed() < START, "no PostgreSQL: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as a machine that loses power does.
    pub(crate) fn crash(&self) {
        self.signal("-QUIT");
        let is_there = || self.pid().is_some();
        let started = Instant::now();
        while is_there() {
            assert!(started.elapsed() < START, "PostgreSQL does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal to the server process alone.
    pub(crate) fn signal(&self, signal: &str) {
        if let Some(pid) = self.pid() {
            run(Command::new("kill").arg(signal).arg(pid.to_string()));
        }
    }

    /// Sends a signal to all processes of the server: one that is stopped (`-STOP`) says nothing more.
    pub(crate) fn signal_all(&self, signal: &str) {
        let pid = self.pid().unwrap().to_string();
        let children = Command::new("pgrep").args(["-P", &pid]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        for pid in children.lines().chain([pid.as_str()]) {
            // One of them may end this moment.
            let _ended = Command::new("kill").args([signal, pid]).output();
        }
    }

    fn pid(&self) -> Option<u32> {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        let pid: u32 = file.lines().next()?.parse().ok()?;
        Path::new(&format!("/proc/{pid}")).exists().then_some(pid)
    }

    /// A database of its own, for what cannot choose a schema.
    pub(crate) fn database(&self, name: &str) {
        self.sql("", &format!("CREATE DATABASE {name}"));
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn is_ready(&self) -> bool {
        let mut command = Command::new(programs().unwrap().join("pg_isready"));
        command.args(["-q", "-h", "127.0.0.1", "-U", USER, "-d", "postgres"]);
        let status = command.args(["-p", &self.port.to_string()]).status();
        status.unwrap().success()
    }

    /// What `sql` prints, values separated by `|`.
    pub(crate) fn sql(&self, options: &str, sql: &str) -> String {
        let mut command = Command::new(programs().unwrap().join("psql"));
        command
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .args(["-h", "127.0.0.1", "-U", USER, "-d", "postgres"])
            .args(["-p", &self.port.to_string(), "-c", sql])
            .env("PGOPTIONS", options);
        run(&mut command)
    }

    /// A schema of its own for one test.
    pub(crate) fn schema(&self) -> Schema {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}_{number}", std::process::id());
        let fresh = format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}");
        self.sql("-c client_min_messages=warning", &fresh);
        Schema {
            server: self.clone(),
            name,
        }
    }
}

impl Schema {
    /// The URL of a store in it.
    pub(crate) fn url(&self) -> String {
        let Self { server, name } = self;
        format!(
            "postgres://{USER}@127.0.0.1:{}/postgres?options=-csearch_path%3D{name}&application_name={name}",
            server.port
        )
    }

    /// Ends all connections of its stores.
    pub(crate) fn end_connections(&self) {
        let kill =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name =";
        self.server.sql("", &format!("{kill} '{}'", self.name));
    }

    /// What `sql` prints, values separated by `|`.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let options = format!("-csearch_path={}", self.name);
        self.server.sql(&options, sql)
    }
}

/// Where the programs of PostgreSQL are; prints why not.
pub(crate) fn programs() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = debian.flatten().map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = debian
        .chain(of_path)
        .find(|bin| bin.join("initdb").exists());
    if found.is_none() {
        drop(writeln!(
            std::io::stderr(),
            "skipped: PostgreSQL is not installed"
        ));
    }
    found
}

/// The user a server runs as; none when that is the user of the tests.
fn system_user() -> Option<&'static str> {
    let id = run(Command::new("id").arg("-u"));
    if id.trim() != "0" {
        return None;
    }
    let is_there = |user: &&&str| {
        let mut id = Command::new("id");
        id.arg("-u")
            .arg(user)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        id.status().unwrap().success()
    };
    SYSTEM_USERS.iter().find(is_there).copied()
}

/// A command as the user of a server.
pub(crate) fn as_user(program: PathBuf) -> Command {
    let Some(user) = system_user() else {
        return Command::new(program);
    };
    let mut command = Command::new("setpriv");
    command
        .args([format!("--reuid={user}"), "--clear-groups".to_owned()])
        .arg("--")
        .arg(program)
        .current_dir("/");
    command
}

/// A port of the loopback interface that nothing listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Runs a command to its end; what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}
