//! The mechanism of installing, with a tool of the test's own in the place of npm: it writes what npm would, in the same sandbox.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;

use super::*;

/// What the stub of npm does: `$CONTENT` is what its package holds.
const NPM: &str = r#"#!/bin/bash
[ "$1" = install ] || exit 9
case "$*" in *--ignore-scripts*) ;; *) echo "scripts would run" >&2; exit 8;; esac
[ -z "$TOKEN" ] || { echo "it sees a secret" >&2; exit 7; }
cat $LAB/work/note.txt 2>/dev/null && { echo "it reads what the server may" >&2; exit 6; }
mkdir -p node_modules/server node_modules/.bin
printf '{"version":"1.2.3","bin":{"server":"run"}}' > node_modules/server/package.json
printf '#!/bin/bash\necho "$CONTENT $*"; cat $LAB/work/note.txt; touch "$0.new" 2>/dev/null || echo fixed\n' > node_modules/.bin/server
chmod +x node_modules/.bin/server
printf '{"packages":{"node_modules/server":{"version":"1.2.3","integrity":"sha512-$CONTENT"}}}' > package-lock.json
"#;

/// A lab with the stub, and a server that it installs.
struct Stubbed {
    lab: Lab,
    config: Config,
    told: Arc<Mutex<Vec<String>>>,
}

impl Stubbed {
    fn new(script: &str) -> Self {
        let lab = Lab::new();
        fs::create_dir_all(lab.root.join("node/bin")).unwrap();
        let config = lab.config(
            "[mcp.servers.stub]\ncommand = \"$LAB/node/bin/npx\"\nargs = [\"-y\", \"server\", \"a\", \"b\"]\nallow_read = [\"$LAB/work\"]\n\
             env = { TOKEN = \"of the server\" }\n",
        );
        let this = Self {
            lab,
            config,
            told: Arc::default(),
        };
        this.write("npx", "");
        this.write("npm", script);
        this
    }

    fn write(&self, name: &str, script: &str) {
        let path = self.lab.root.join("node/bin").join(name);
        fs::write(&path, script.replace("$LAB", &self.lab.path(""))).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// As another host would.
    async fn prepare(&self, pinned: Option<&LaunchPin>) -> Result<Prepared, LaunchError> {
        let (name, server) = self.server();
        let launcher = self.launcher();
        let preparing = launcher.prepare(&name, server, pinned);
        tokio::time::timeout(PATIENCE, preparing).await.unwrap()
    }

    fn launcher(&self) -> Launcher {
        let secrets = Arc::new(KnownSecrets::open(&self.config));
        let told = Arc::clone(&self.told);
        let progress = Progress::new(move |text| told.lock().unwrap().push(text.to_owned()));
        Launcher::new(&self.config, &secrets, progress, None).unwrap()
    }

    fn server(&self) -> (ServerName, &CommandServer) {
        let name = ServerName::new("stub").unwrap();
        let ServerTransport::Command(server) = &self.config.mcp_servers[&name].transport else {
            panic!("it is a program");
        };
        (name, server)
    }

    fn n_told(&self, begin: &str) -> usize {
        let told = self.told.lock().unwrap();
        told.iter().filter(|text| text.starts_with(begin)).count()
    }

    /// Directories of installations.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.lab.root.join("home/cache/zeph-host/servers"));
        let paths = entries.unwrap().flatten().map(|entry| entry.path());
        paths.filter(|path| path.is_dir()).collect()
    }
}

fn with_content(content: &str) -> String {
    NPM.replace("$CONTENT", content)
}

#[tokio::test]
async fn a_package_is_installed_once_and_runs_without_changing_itself() {
    let stubbed = Stubbed::new(&with_content("first"));
    let printed = stubbed.lab.printed(&stubbed.config, "stub").await;
    assert_eq!(printed, "first a b\nof the work\nfixed\n");
    let prepared = stubbed.prepare(None).await.unwrap();
    assert_eq!(stubbed.n_told("installing"), 0, "it was there");
    let pin = prepared.pin().installed.as_ref().unwrap();
    assert_eq!(
        (pin.package.as_str(), pin.version.as_str()),
        ("server", "1.2.3")
    );
    assert_eq!(prepared.pin().argv[1..], ["-y", "server", "a", "b"]);
}

#[tokio::test]
async fn two_hosts_at_once_install_once() {
    let stubbed = Stubbed::new(&with_content("first").replace("mkdir", "sleep 0.5; mkdir"));
    let (one, other) = tokio::join!(stubbed.prepare(None), stubbed.prepare(None));
    assert_eq!(one.unwrap().pin(), other.unwrap().pin());
    assert_eq!(stubbed.n_told("installing"), 1);
    assert_eq!(stubbed.n_told("another process installs"), 1);
    assert_eq!(stubbed.folders().len(), 1);
}

#[tokio::test]
async fn other_bytes_are_another_pin() {
    let stubbed = Stubbed::new(&with_content("first"));
    let first = stubbed.prepare(None).await.unwrap().pin().clone();
    fs::remove_dir_all(stubbed.lab.root.join("home/cache/zeph-host/servers")).unwrap();
    stubbed.write("npm", &with_content("other"));
    let other = stubbed.prepare(Some(&first)).await.unwrap().pin().clone();
    assert_eq!(first.argv, other.argv);
    let integrity = |pin: &LaunchPin| pin.installed.clone().unwrap().integrity;
    assert_ne!(integrity(&first), integrity(&other));
}

#[tokio::test]
async fn the_newest_version_is_installed_beside_the_pinned_one() {
    let stubbed = Stubbed::new(&with_content("first"));
    let first = stubbed.prepare(None).await.unwrap().pin().clone();
    let (name, server) = stubbed.server();
    let launcher = stubbed.launcher();
    let same = launcher.newest(&name, server).await.unwrap();
    assert_eq!(Some(&same), first.installed.as_ref());
    stubbed.write("npm", &with_content("second").replace("1.2.3", "2.0.0"));
    let newest = launcher.newest(&name, server).await.unwrap();
    assert_eq!(newest.version, "2.0.0");
    let again = stubbed.prepare(Some(&first)).await.unwrap().pin().clone();
    assert_eq!(again, first, "what is pinned stays in use");
    let accepted = LaunchPin {
        installed: Some(newest),
        ..first
    };
    let now = stubbed.prepare(Some(&accepted)).await.unwrap();
    assert_eq!(now.pin(), &accepted);
    assert_eq!(stubbed.folders().len(), 2);
}

#[tokio::test]
async fn what_fails_leaves_nothing_and_shows_why() {
    let stubbed = Stubbed::new("#!/bin/bash\nmkdir node_modules; echo 'code E404' >&2; exit 3\n");
    let error = stubbed.prepare(None).await.unwrap_err().to_string();
    assert!(
        error.contains("npm ended with exit code 3\n  | code E404"),
        "{error}"
    );
    assert_eq!(stubbed.folders(), Vec::<PathBuf>::new());
    stubbed.write("npm", &with_content("first"));
    stubbed.prepare(None).await.unwrap();
}

/// A host that goes away in the middle: the installer ends with it, and the next one begins anew.
#[tokio::test]
async fn what_was_begun_and_dropped_is_begun_anew() {
    let stubbed =
        Stubbed::new(&with_content("first").replace("mkdir", "touch half; sleep 1000; mkdir"));
    {
        let preparing = stubbed.prepare(None);
        tokio::pin!(preparing);
        let is_half = async {
            let is_there = || {
                stubbed
                    .folders()
                    .iter()
                    .any(|folder| folder.join("half").exists())
            };
            while !(stubbed.n_told("installing") == 1 && is_there()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = &mut preparing => panic!("it takes a thousand seconds"),
            () = is_half => {}
        }
    }
    stubbed.write("npm", &with_content("first"));
    let prepared = stubbed.prepare(None).await.unwrap();
    assert!(prepared.pin().installed.is_some());
    assert!(!stubbed.folders()[0].join("half").exists());
}
