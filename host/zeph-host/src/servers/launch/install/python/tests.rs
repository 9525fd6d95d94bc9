use super::*;

/// An environment with packages of these names, versions and records.
fn venv(packages: &[(&str, &str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, version, record) in packages {
        let info = folder
            .path()
            .join("lib/python3.12/site-packages")
            .join(format!("{name}-{version}.dist-info"));
        fs::create_dir_all(&info).unwrap();
        let metadata =
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: other\n");
        fs::write(info.join("METADATA"), metadata).unwrap();
        fs::write(info.join("RECORD"), record).unwrap();
    }
    folder
}

fn digest(packages: &[(&str, &str, &str)]) -> String {
    Installed::of(venv(packages).path()).unwrap().digest()
}

#[test]
fn the_digest_is_over_what_came_with_the_packages() {
    let own = "server/a.py,sha256=one,3\nserver-1.0.dist-info/RECORD,,\n";
    let with_what_is_made_here = "../../../bin/server,sha256=x,1\nserver-1.0.dist-info/INSTALLER,sha256=y,2\n\
                                  server/__pycache__/a.pyc,sha256=z,3\nserver/a.py,sha256=one,3\n";
    let first = digest(&[("server", "1.0", own)]);
    assert_eq!(first, digest(&[("server", "1.0", with_what_is_made_here)]));
    assert_eq!(
        first,
        digest(&[
            ("server", "1.0", own),
            ("pip", "24.0", "pip/a.py,sha256=p,1\n")
        ])
    );
    assert_ne!(first, digest(&[("server", "1.1", own)]));
    assert_ne!(
        first,
        digest(&[("server", "1.0", "server/a.py,sha256=two,3\n")])
    );
    assert_ne!(
        first,
        digest(&[("server", "1.0", own), ("needed", "2.0", "")])
    );
}

#[test]
fn names_are_compared_as_an_index_does() {
    let venv = venv(&[("MCP_Server.Git", "0.6.2", "")]);
    let installed = Installed::of(venv.path()).unwrap();
    assert_eq!(installed.version("mcp-server-git"), Some("0.6.2"));
    assert_eq!(installed.version("mcp-server"), None);
}

#[test]
fn a_program_that_is_not_there_is_told_with_those_that_are() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("venv/bin");
    fs::create_dir_all(&bin).unwrap();
    for name in ["python3", "pip", "activate", "server-cli", "uvicorn"] {
        fs::write(bin.join(name), "").unwrap();
    }
    assert!(script(folder.path(), "server-cli").is_ok());
    let problem = script(folder.path(), "server").unwrap_err();
    assert!(
        problem.contains("are: server-cli, uvicorn; write"),
        "{problem}"
    );
}
