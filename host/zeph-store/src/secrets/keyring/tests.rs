//! The real service of GNOME on a bus of its own. It runs where `gnome-keyring-daemon` and `dbus-daemon` are installed.

mod desktop;

use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use self::desktop::Desktop;
use super::{Keyring, KeyringError};

#[test]
fn a_real_service_keeps_values() {
    let Some(desktop) = Desktop::with_keyring() else {
        return;
    };
    let keyring = Keyring::at(desktop.address.clone());
    let (one, other) = (Path::new("/one"), Path::new("/other"));
    let long = "ä".repeat(30_000);
    keyring.set(one, "A", "first value").unwrap();
    keyring.set(one, "A", "second value").unwrap();
    keyring.set(one, "LONG", &long).unwrap();
    keyring.set(other, "A", "of another host").unwrap();
    let got = keyring.get(one, &["LONG", "A", "MISSING"]).unwrap();
    assert_eq!(got, [Some(long), Some("second value".to_owned()), None]);
    assert_eq!(
        keyring.get(other, &["A"]).unwrap(),
        [Some("of another host".to_owned())]
    );
    keyring.remove(one, "A").unwrap();
    keyring.remove(one, "A").unwrap();
    assert_eq!(keyring.get(one, &["A"]).unwrap(), [None]);
    assert_eq!(keyring.get(other, &["A"]).unwrap().len(), 1);
}

#[test]
fn a_bus_where_nobody_keeps_secrets_is_no_keyring() {
    let Some(desktop) = Desktop::bare() else {
        return;
    };
    let keyring = Keyring::at(desktop.address.clone());
    let absent = keyring.set(Path::new("/one"), "A", "value").unwrap_err();
    assert!(matches!(absent, KeyringError::Absent(_)), "{absent}");
}

#[test]
fn a_bus_that_says_nonsense_or_nothing_is_no_keyring() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        for answer in [
            &b""[..],
            b"REJECTED EXTERNAL\r\n",
            b"OK 1\r\nnonsense that is no message at all",
        ] {
            let (mut stream, _) = listener.accept().unwrap();
            drop(stream.write_all(answer));
        }
    });
    for _ in 0..3 {
        let keyring = Keyring::at(format!("unix:path={}", path.display()));
        assert!(keyring.get(Path::new("/one"), &["A"]).is_err());
    }
    server.join().unwrap();
}
