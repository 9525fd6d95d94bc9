//! TLS to the server, with certificates made here.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use zeph_core::id::ConversationId;
use zeph_store::StoreError;

use crate::server::{Server, USER, programs, run};
use crate::setup::{NOW_MS, open_url, told, try_open_url};

/// An authority and a certificate for `localhost` alone, in files.
struct Certificates {
    root: PathBuf,
    other_root: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificates {
    fn make(folder: &Path) -> Self {
        let authority = || {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        };
        let (root, other) = (authority(), authority());
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &root).unwrap();
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        Self {
            root: write("root.pem", root.pem()),
            other_root: write("other.pem", other.pem()),
            certificate: write("server.pem", certificate.pem()),
            key: write("server.key", key.serialize_pem()),
        }
    }
}

#[tokio::test]
async fn the_server_is_who_its_certificate_says() {
    if programs().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = Certificates::make(folder.path());
    let server = Server {
        folder: folder.path().join("server"),
        port: crate::server::free_port(),
    };
    server.create("ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n");
    for (from, name) in [(&made.certificate, "server.pem"), (&made.key, "server.key")] {
        let to = server.data().join(name);
        fs::copy(from, &to).unwrap();
        run(std::process::Command::new("chmod").arg("600").arg(&to));
        let owner = format!("--reference={}", server.data().display());
        run(std::process::Command::new("chown").arg(owner).arg(&to));
    }
    // Nothing but TLS, with passwords.
    server.run(std::process::id());
    server.sql("", &format!("ALTER ROLE {USER} PASSWORD 's3cr3t'"));
    let rules = "hostssl all all 127.0.0.1/32 scram-sha-256\nlocal all all trust\n";
    fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
    server.signal("-HUP");

    let (root, other) = (made.root.display(), made.other_root.display());
    let url = |host: &str, options: &str| {
        format!(
            "postgres://{USER}:s3cr3t@{host}:{}/postgres?{options}",
            server.port
        )
    };
    let good = [
        url(
            "localhost",
            &format!("sslmode=verify-full&sslrootcert={root}"),
        ),
        url("localhost", &format!("sslrootcert={root}")),
        url(
            "127.0.0.1",
            &format!("sslmode=verify-ca&sslrootcert={root}"),
        ),
        url("127.0.0.1", &format!("sslmode=require&sslrootcert={root}")),
        url("127.0.0.1", "sslmode=require"),
    ];
    for url in good {
        let store = open_url(&url);
        store
            .begin_conversation(ConversationId::new(), NOW_MS)
            .await
            .unwrap();
    }
    let bad = [
        (
            url(
                "127.0.0.1",
                &format!("sslmode=verify-full&sslrootcert={root}"),
            ),
            "certificate",
        ),
        (
            url(
                "localhost",
                &format!("sslmode=verify-full&sslrootcert={other}"),
            ),
            "certificate",
        ),
        (url("localhost", "sslmode=verify-full"), "certificate"),
        (
            url(
                "localhost",
                &format!("sslmode=verify-ca&sslrootcert={other}"),
            ),
            "certificate",
        ),
        (
            url("localhost", &format!("sslmode=require&sslrootcert={other}")),
            "certificate",
        ),
        // Without TLS, which is what this is without a word on this machine.
        (url("localhost", ""), "pg_hba.conf"),
        (
            url("localhost", "sslmode=verify-full&sslrootcert=/nonexistent"),
            "/nonexistent",
        ),
        (
            url(
                "localhost",
                &format!("sslmode=verify-full&sslrootcert={}", made.key.display()),
            ),
            "no certificate",
        ),
    ];
    for (url, expected) in bad {
        let error = try_open_url(&url).unwrap_err();
        let told = told(&error);
        assert!(told.contains(expected), "{url}: {told}");
        assert!(!told.contains("s3cr3t"), "{told}");
    }
    let wrong = url("localhost", &format!("sslrootcert={root}")).replace("s3cr3t", "wr0ng");
    let error = try_open_url(&wrong).unwrap_err();
    assert!(
        matches!(error, StoreError::ServerRefused { .. }),
        "{error:?}"
    );
    assert!(
        told(&error).contains("password authentication failed"),
        "{}",
        told(&error)
    );
}
