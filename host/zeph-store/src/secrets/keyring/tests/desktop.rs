//! A message bus with the keyring of GNOME, for tests.
#![expect(clippy::unwrap_used, reason = "it is a part of tests")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A message bus with a home of its own. What runs on it ends with it.
pub(crate) struct Desktop {
    bus: Child,
    /// Where the bus listens.
    pub(crate) address: String,
    _home: tempfile::TempDir,
}

impl Desktop {
    /// A bus on which the keyring starts when it is asked for, unlocked with its password. `None` where the programs are missing.
    pub(crate) fn with_keyring() -> Option<Self> {
        program("gnome-keyring-daemon")?;
        Self::start(true)
    }

    /// A bus without a keyring.
    pub(crate) fn bare() -> Option<Self> {
        Self::start(false)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the test starts the bus it speaks over"
    )]
    fn start(has_keyring: bool) -> Option<Self> {
        let program = program("dbus-daemon")?;
        let home = tempfile::tempdir().unwrap();
        let services = home.path().join("services");
        fs::create_dir(&services).unwrap();
        if has_keyring {
            fs::write(services.join("org.freedesktop.secrets.service"), SERVICE).unwrap();
        }
        let folder = home.path().to_string_lossy();
        let config = home.path().join("bus.conf");
        fs::write(&config, CONFIG.replace("FOLDER", &folder)).unwrap();
        let mut bus = Command::new(program);
        bus.arg("--config-file").arg(config);
        bus.args(["--nofork", "--print-address"]).env_clear();
        bus.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for variable in ["HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
            bus.env(variable, home.path());
        }
        let bus = bus.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut bus = bus.spawn().unwrap();
        let mut address = String::new();
        let mut stdout = BufReader::new(bus.stdout.take().unwrap());
        stdout.read_line(&mut address).unwrap();
        Some(Self {
            bus,
            address: address.trim().to_owned(),
            _home: home,
        })
    }
}

/// The place of a program. Without it a test does nothing, and says why.
#[expect(
    clippy::disallowed_methods,
    reason = "the test looks for a program of the machine"
)]
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    let found = files.find(|file| file.is_file());
    if found.is_none() {
        let why = format!(
            "left out: a keyring of the desktop, because `{name}` is missing (apt-get install gnome-keyring dbus-daemon)\n"
        );
        // Past the runner, which would keep it to itself.
        drop(std::io::stderr().write_all(why.as_bytes()));
    }
    found
}

impl Drop for Desktop {
    fn drop(&mut self) {
        drop(self.bus.kill());
        drop(self.bus.wait());
    }
}

const SERVICE: &str = "[D-BUS Service]
Name=org.freedesktop.secrets
Exec=/bin/sh -c \"printf password | exec gnome-keyring-daemon --foreground --unlock --components=secrets\"
";

const CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=FOLDER/bus</listen>
  <servicedir>FOLDER/services</servicedir>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;
