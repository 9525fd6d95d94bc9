//! Servers in the sandbox of this machine: small programs that say what they can see.

use std::fs;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use zeph_config::{Flags, ServerTransport, Surroundings};
use zeph_core::exit::CommandExit;
use zeph_store::SecretFolder;

use super::*;

/// More than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host with a home of its own, and directories beside it.
struct Lab {
    folder: tempfile::TempDir,
    root: PathBuf,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("launch")
            .tempdir_in("/var/tmp")
            .unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home", "work", "other"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("work/note.txt"), "of the work\n").unwrap();
        fs::write(root.join("other/note.txt"), "of others\n").unwrap();
        Self { folder, root }
    }

    /// The path of something of the lab.
    fn path(&self, name: &str) -> String {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join(name)
            .display()
            .to_string()
    }

    /// The configuration with `servers` in it; `$LAB` stands for the place of the lab.
    fn config(&self, servers: &str) -> Config {
        let base = |name: &str| Some(self.root.join("home").join(name));
        let surroundings = Surroundings {
            env: BTreeMap::new(),
            working_directory: self.root.join("work"),
            typed_directory: None,
            home: Some(self.root.join("home")),
            config_home: base("config"),
            data_home: base("data"),
            state_home: base("state"),
            cache_home: base("cache"),
            cores: std::num::NonZeroUsize::MIN,
        };
        let file = self.root.join("config.toml");
        fs::write(&file, servers.replace("$LAB", &self.path(""))).unwrap();
        let flags = Flags {
            config: Some(file),
            ..Flags::default()
        };
        let loaded = Config::load(&surroundings, &flags);
        loaded.unwrap_or_else(|errors| panic!("{errors}")).config
    }

    fn launcher(&self, config: &Config) -> Launcher {
        let secrets = Arc::new(KnownSecrets::open(config));
        Launcher::new(config, &secrets, Progress::new(|_| {}), None).unwrap()
    }

    async fn start(&self, config: &Config, name: &str) -> Result<Launched, LaunchError> {
        let name = ServerName::new(name).unwrap();
        let ServerTransport::Command(server) = &config.mcp_servers[&name].transport else {
            panic!("it is a program");
        };
        let launcher = self.launcher(config);
        let prepared = launcher.prepare(&name, server, None).await?;
        launcher.start(&prepared).await
    }

    /// What a server prints until it ends.
    async fn printed(&self, config: &Config, name: &str) -> String {
        let mut launched = self.start(config, name).await.unwrap();
        let mut pipes = launched.pipes.take().unwrap();
        let mut printed = String::new();
        let reading = pipes.stdout.read_to_string(&mut printed);
        tokio::time::timeout(PATIENCE, reading)
            .await
            .unwrap()
            .unwrap();
        let end = tokio::time::timeout(PATIENCE, launched.service.ended());
        let end = end.await.unwrap();
        assert_eq!(end.fault, None, "{end:?}");
        printed
    }
}

fn server(name: &str, script: &str, more: &str) -> String {
    format!("[mcp.servers.{name}]\ncommand = \"bash\"\nargs = [\"-c\", '''{script}''']\n{more}\n")
}

#[tokio::test]
async fn each_server_has_only_what_is_its_own() {
    let lab = Lab::new();
    let script = "echo \"$TOKEN $OTHER_TOKEN $PLAIN\"; echo kept >> \"$HOME/note\"; wc -l < \"$HOME/note\"; \
                  for other in \"$HOME\"/../*/note; do echo \"note ${other##*/}\"; done; ls ~/.. ; \
                  cat $LAB/home/data/zeph-host/secrets/secrets.json $LAB/home/.ssh/key $LAB/config.toml 2>/dev/null; \
                  tr '\\0' '\\n' < /proc/1/environ | grep -c secret-value";
    let text = [
        server(
            "one",
            script,
            "env = { TOKEN = { secret = \"ONE\", prefix = \"a \" }, PLAIN = \"text\" }",
        ),
        server(
            "two",
            script,
            "env = { OTHER_TOKEN = { secret = \"TWO\" } }",
        ),
    ]
    .concat();
    let config = lab.config(&text);
    fs::create_dir(lab.root.join("home/.ssh")).unwrap();
    fs::write(lab.root.join("home/.ssh/key"), "private").unwrap();
    let secrets = SecretFolder::new(config.store.secrets().unwrap());
    secrets.set("ONE", "secret-value-1", 0).unwrap();
    secrets.set("TWO", "secret-value-2", 0).unwrap();
    let own = |name: &str, env: &str, runs: u32| format!("{env}\n{runs}\nnote note\n{name}\n0\n");
    let one = lab.printed(&config, "one").await;
    assert_eq!(one, own("one", "a secret-value-1  text", 1));
    let two = lab.printed(&config, "two").await;
    assert_eq!(two, own("two", " secret-value-2 ", 1));
    // The home is kept, and is still nobody else's.
    let again = lab.printed(&config, "one").await;
    assert_eq!(again, own("one", "a secret-value-1  text", 2));
}

#[tokio::test]
async fn reads_writes_and_the_network_are_what_was_granted() {
    let lab = Lab::new();
    let script = "cat $LAB/work/note.txt $LAB/other/note.txt 2>&1 | sed 's/.*: //'; pwd; \
                  (echo x > $LAB/work/new) 2>/dev/null || echo work fixed; (echo x > $LAB/other/new) 2>/dev/null || echo other fixed; \
                  cp /bin/true \"$TMPDIR/run\" && \"$TMPDIR/run\" && echo tmp runs; \
                  (exec 3<>/dev/tcp/192.0.2.1/80) 2>/dev/null || echo no network; printenv HTTPS_PROXY || echo no way out";
    let text = [
        server("none", script, ""),
        server("reads", script, "allow_read = [\"$LAB/work\"]"),
        server(
            "writes",
            script,
            "allow_write = [\"$LAB/work\"]\nallow_read = [\"$LAB/other\"]\ncwd = \"$LAB/other\"",
        ),
    ]
    .concat();
    let config = lab.config(&text);
    let (gone, rest) = (
        "No such file or directory",
        "tmp runs\nno network\nno way out\n",
    );
    let home = lab.path("home/data/zeph-host/servers/none");
    assert_eq!(
        lab.printed(&config, "none").await,
        format!("{gone}\n{gone}\n{home}\nwork fixed\nother fixed\n{rest}")
    );
    let work = lab.path("work");
    assert_eq!(
        lab.printed(&config, "reads").await,
        format!("of the work\n{gone}\n{work}\nwork fixed\nother fixed\n{rest}")
    );
    let other = lab.path("other");
    assert_eq!(
        lab.printed(&config, "writes").await,
        format!("of the work\nof others\n{other}\nother fixed\n{rest}")
    );
}

#[tokio::test]
async fn a_start_that_is_refused_names_the_key() {
    let lab = Lab::new();
    let text = [
        server(
            "loader",
            "true",
            "env = { NODE_OPTIONS = \"--require /x.js\" }",
        ),
        server("loader2", "true", "env = { LD_PRELOAD = \"/x.so\" }"),
        server(
            "secret",
            "true",
            "env = { TOKEN = { secret = \"NOT_THERE\" } }",
        ),
        server("directory", "true", "cwd = \"$LAB/other\""),
        "[mcp.servers.program]\ncommand = \"no-such-server\"\n".to_owned(),
        "[mcp.servers.command]\ncommand = \"npx\"\nargs = [\"--call\", \"x\"]\n".to_owned(),
    ]
    .concat();
    let config = lab.config(&text);
    for (name, expect) in [
        ("loader", "`NODE_OPTIONS` makes programs load other code"),
        ("loader2", "remove it: from `mcp.servers.loader2.env`"),
        ("secret", "`zeph-host secret set NOT_THERE` stores it"),
        ("directory", "list it in `mcp.servers.directory.allow_read`"),
        (
            "program",
            "there is no program `no-such-server` on the search path; install it, or give its absolute path: in `mcp.servers.program.command`, or as the COMMAND of `zeph-host wrap`",
        ),
        ("command", "`--call` is not understood"),
    ] {
        let error = lab.start(&config, name).await.unwrap_err().to_string();
        assert!(error.contains(expect), "{name}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[tokio::test]
async fn an_early_end_is_explained_with_the_smallest_grant() {
    let lab = Lab::new();
    let script =
        "cat $LAB/other/note.txt; curl -sS --max-time 20 https://api.example.org/x; exit 7";
    let text = server("files", script, "hosts = [\"www.example.org\"]");
    let config = lab.config(&text);
    let mut launched = lab.start(&config, "files").await.unwrap();
    drop(launched.pipes.take());
    let end = tokio::time::timeout(PATIENCE, launched.service.ended());
    let end = end.await.unwrap();
    assert_eq!(end.exit, CommandExit::Code(7));
    let path = lab.path("other/note.txt");
    let expect = [
        "the server was not connected to api.example.org; add \"api.example.org\" to `mcp.servers.files.hosts` to allow it".to_owned(),
        format!("the server could not read {path}; add \"{path}\" to `mcp.servers.files.allow_read` to allow it"),
    ];
    assert_eq!(launched.complaints(), expect);
    assert!(launched.error_output().contains("cat: "));
}

#[tokio::test]
async fn a_program_that_is_not_in_the_sandbox_is_told() {
    let lab = Lab::new();
    let program = lab.root.join("other/server");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    let config = lab.config("[mcp.servers.local]\ncommand = \"$LAB/other/server\"\n");
    let launched = lab.start(&config, "local").await.unwrap();
    let end = tokio::time::timeout(PATIENCE, launched.service.ended());
    end.await.unwrap();
    let complaints = launched.complaints().concat();
    assert!(
        complaints.contains("in `mcp.servers.local.allow_read`"),
        "{complaints}"
    );
}

#[tokio::test]
async fn without_a_sandbox_it_is_said() {
    let lab = Lab::new();
    let text = format!(
        "[tools.sandbox]\ndisabled = true\n{}",
        server("bare", "cat", "")
    );
    let config = lab.config(&text);
    let launched = lab.start(&config, "bare").await.unwrap();
    assert_eq!(launched.label(), JailLabel::None);
    let [layer] = launched.missing_layers.as_slice() else {
        panic!("{:?}", launched.missing_layers);
    };
    assert!(layer.contains("there is no sandbox"), "{layer}");
}

#[test]
fn a_remote_server_gets_its_headers() {
    let lab = Lab::new();
    let text = "[mcp.servers.remote]\nurl = \"https://example.org/mcp\"\n\
                headers = { Authorization = { secret = \"T\", prefix = \"Bearer \" }, X-Team = \"a\" }\n";
    let config = lab.config(text);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _guard = runtime.enter();
    let launcher = lab.launcher(&config);
    let name = ServerName::new("remote").unwrap();
    let ServerTransport::Http(server) = &config.mcp_servers[&name].transport else {
        panic!("it has a URL");
    };
    assert!(
        launcher.remote(&name, server).is_err(),
        "nothing is stored yet"
    );
    let secrets = SecretFolder::new(config.store.secrets().unwrap());
    secrets.set("T", "secret-value", 0).unwrap();
    let headers = launcher.remote(&name, server).unwrap().headers;
    assert_eq!(headers["authorization"], "Bearer secret-value");
    assert_eq!(headers["x-team"], "a");
}

mod installed;
mod stub;
