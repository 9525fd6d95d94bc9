use std::fs;

use super::*;

#[test]
fn what_a_server_complains_about_becomes_the_smallest_grant() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    for name in ["open", "shut", "own"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    fs::write(root.join("shut/data file.txt"), "x").unwrap();
    fs::write(root.join("open/data.txt"), "x").unwrap();
    let granted = Granted {
        read: vec![root.join("open")],
        write: Vec::new(),
        hidden: vec![root.join("own")],
    };
    let shown = |path: &str| root.join(path).to_str().unwrap().to_owned();
    let (file, shut) = (shown("shut/data file.txt"), shown("shut"));
    let table: &[(String, Vec<(&str, String)>)] = &[
        (
            format!("Error: EACCES: permission denied, open '{file}'"),
            vec![("allow_read", file.clone())],
        ),
        (
            format!("PermissionError: [Errno 13] Permission denied: '{file}'"),
            vec![("allow_read", file.clone())],
        ),
        (
            format!("Error: ENOENT: no such file or directory, mkdir '{shut}/new'"),
            vec![("allow_write", shut.clone())],
        ),
        (
            format!("ls: cannot access {shut}: No such file or directory"),
            vec![("allow_read", shut.clone())],
        ),
        (
            format!(
                "EROFS: read-only file system, open '{}'",
                shown("open/data.txt")
            ),
            vec![("allow_write", shown("open/data.txt"))],
        ),
        // Granted already, not there, the host's own, no complaint, the whole system.
        (format!("ENOENT: '{}'", shown("open/data.txt")), vec![]),
        (format!("ENOENT: '{}'", shown("shut/gone")), vec![]),
        (format!("EACCES: '{}'", shown("own")), vec![]),
        (format!("listening on '{shut}'"), vec![]),
        ("EACCES: permission denied, scandir '/'".to_owned(), vec![]),
        (
            "EACCES: permission denied, scandir '/etc'".to_owned(),
            vec![],
        ),
    ];
    for (line, expect) in table {
        let found: Vec<(&str, String)> = paths(line, &granted)
            .iter()
            .map(|refusal| (refusal.field(), refusal.value()))
            .collect();
        assert_eq!(found, *expect, "{line}");
    }
}

#[test]
fn hostile_messages_propose_a_bounded_number() {
    let place = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for n in 0..200 {
        let path = place.path().join(n.to_string());
        fs::write(&path, "x").unwrap();
        text.push_str(&format!("EACCES: '{}'\n", path.display()));
    }
    assert_eq!(paths(&text, &Granted::default()).len(), REFUSALS_MAX);
}

#[test]
fn the_sentence_names_the_key() {
    let server = ServerName::new("files").unwrap();
    let host = Refusal::Host("api.example.org:8443".to_owned());
    assert_eq!(
        host.sentence(&server),
        "the server was not connected to api.example.org:8443; add \"api.example.org:8443\" to `mcp.servers.files.hosts` to allow it"
    );
}
