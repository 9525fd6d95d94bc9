//! What an image of a container is built from: a root file system with the program and nothing else, and the file for it.

use std::path::Path;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use crate::archive::{Item, gzip, tar};
use crate::release::{self, Contents, Release};

/// The user in the image: the number that images without a shell use for one without rights.
const USER: u64 = 65532;

const PASSWD: &str =
    "root:x:0:0:root:/:/sbin/nologin\nzeph:x:65532:65532:zeph-host:/home/zeph:/sbin/nologin\n";

const GROUP: &str = "root:x:0:\nzeph:x:65532:\n";

/// Letters in a line of a PEM file.
const LINE: usize = 64;

/// Writes `zeph-host-VERSION-container.tar.gz`: the Containerfile, and the root beside it.
pub(crate) fn write(release: &Release, contents: &Contents, folder: &Path) -> Result<()> {
    let name = release.file("container");
    let containerfile = include_bytes!("../assets/Containerfile");
    let items = [
        Item::file(format!("{name}/Containerfile"), containerfile),
        Item::file(
            format!("{name}/rootfs.tar"),
            &tar(release, &root(contents))?,
        ),
    ];
    let packed = gzip(release, &tar(release, &items)?)?;
    release::write(folder, &format!("{name}.tar.gz"), &packed)
}

fn root(contents: &Contents) -> Vec<Item> {
    let mut items = vec![
        Item::program("usr/bin/zeph-host", &contents.program),
        Item::file("etc/passwd", PASSWD.as_bytes()),
        Item::file("etc/group", GROUP.as_bytes()),
        Item::file(
            "etc/ssl/certs/ca-certificates.crt",
            certificates().as_bytes(),
        ),
        Item::folder("home/zeph", 0o700).owned_by(USER),
        Item::folder("work", 0o755).owned_by(USER),
        Item::folder("tmp", 0o1777),
    ];
    items.extend(contents.licence_files("usr/share/doc/zeph-host/"));
    items
}

/// Mozilla's root certificates, as PEM.
fn certificates() -> String {
    let mut pem = String::new();
    for certificate in TLS_SERVER_ROOT_CERTS {
        let text = STANDARD.encode(certificate);
        pem += "-----BEGIN CERTIFICATE-----\n";
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE));
            pem += line;
            pem.push('\n');
            rest = after;
        }
        pem += "-----END CERTIFICATE-----\n";
    }
    pem
}
