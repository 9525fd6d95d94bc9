use std::io::Cursor;
use std::sync::Arc;

use proptest::prelude::*;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;

/// A ClientHello as a real client sends it.
fn hello(name: &str, alpn: &[&str]) -> Vec<u8> {
    let mut config = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|one| one.as_bytes().to_vec()).collect();
    let name = name.to_owned().try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

/// The handshake message in one record.
fn message(record: &[u8]) -> Vec<u8> {
    record[RECORD_HEAD..].to_vec()
}

/// The message again, cut into records of these lengths; the last one takes the rest.
fn in_records(message: &[u8], lengths: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = message;
    for length in lengths.iter().copied().chain([usize::MAX]) {
        let (content, after) = rest.split_at(length.clamp(1, rest.len().max(1)).min(rest.len()));
        if content.is_empty() {
            break;
        }
        bytes.extend([HANDSHAKE, 3, 1]);
        bytes.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
        bytes.extend(content);
        rest = after;
    }
    bytes
}

/// What the reader says of bytes that come all at once.
fn read(bytes: &[u8]) -> Result<Option<Host>, BadHello> {
    HelloReader::default().push(bytes)
}

/// What a real server understands: the name, or that there is none; nothing when it takes no ClientHello from the bytes.
fn oracle(bytes: &[u8]) -> Option<Option<String>> {
    let mut acceptor = Acceptor::default();
    let mut input = Cursor::new(bytes);
    while acceptor.read_tls(&mut input).ok()? > 0 {
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let name = accepted.client_hello().server_name().map(str::to_owned);
                return Some(name);
            }
            Ok(None) => {}
            Err(_) => return None,
        }
    }
    None
}

/// A message with other extensions, whose list is replaced.
fn with_extensions(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let message = message(&hello("example.org", &[]));
    let mut input = Input(&message[MESSAGE_HEAD..]);
    let mut extensions = extensions(&mut input).unwrap().to_vec();
    let fixed = message.len() - extensions.len() - 2;
    change(&mut extensions);
    let mut body = message[MESSAGE_HEAD..fixed].to_vec();
    body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
    body.extend(extensions);
    let mut changed = vec![CLIENT_HELLO, 0];
    changed.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
    changed.extend(body);
    in_records(&changed, &[])
}

fn without(extensions: &mut Vec<u8>, unwanted: u16) {
    let all = std::mem::take(extensions);
    let mut input = Input(&all);
    while let Some((kind, content)) = extension(&mut input) {
        if kind != unwanted {
            push(extensions, kind, content);
        }
    }
}

fn push(extensions: &mut Vec<u8>, kind: u16, content: &[u8]) {
    extensions.extend(kind.to_be_bytes());
    extensions.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
    extensions.extend(content);
}

/// The content of the extension of server names.
fn names(names: &[(u8, &[u8])]) -> Vec<u8> {
    let mut list = Vec::new();
    for (kind, name) in names {
        list.push(*kind);
        list.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        list.extend(*name);
    }
    let mut content = u16::try_from(list.len()).unwrap().to_be_bytes().to_vec();
    content.extend(list);
    content
}

#[test]
fn a_hello_names_its_server_however_it_is_cut() {
    let bytes = hello("example.org", &["h2", "http/1.1"]);
    let expect: Host = "example.org".parse().unwrap();
    assert_eq!(read(&bytes), Ok(Some(expect.clone())));
    let message = message(&bytes);
    for length in 1..message.len() {
        let cut = in_records(&message, &[length]);
        assert_eq!(read(&cut), Ok(Some(expect.clone())), "cut at {length}");
    }
    let mut reader = HelloReader::default();
    let (last, before) = bytes.split_last().unwrap();
    for byte in before {
        assert_eq!(reader.push(&[*byte]), Ok(None));
    }
    assert_eq!(reader.push(&[*last]), Ok(Some(expect)));
    assert_eq!(reader.into_bytes(), bytes);
}

#[test]
fn what_names_no_single_server_is_refused() {
    let replaced = |content: Vec<u8>| {
        with_extensions(|extensions| {
            without(extensions, SERVER_NAME);
            push(extensions, SERVER_NAME, &content);
        })
    };
    let host = b"example.org".as_slice();
    let cases = [
        (with_extensions(Vec::clear), BadHello::NoName),
        (
            with_extensions(|all| without(all, SERVER_NAME)),
            BadHello::NoName,
        ),
        (
            with_extensions(|all| push(all, SERVER_NAME, &names(&[(0, b"example.net")]))),
            BadHello::SeveralNames,
        ),
        (
            replaced(names(&[(0, host), (0, b"example.net")])),
            BadHello::SeveralNames,
        ),
        (replaced(names(&[(0, b"127.0.0.1")])), BadHello::Address),
        (replaced(names(&[(0, b"0x7f.1")])), BadHello::Address),
        (replaced(names(&[(0, b"::1")])), BadHello::Address),
        (
            replaced(names(&[(0, b"example.org.")])),
            BadHello::Malformed,
        ),
        (replaced(names(&[(0, b"")])), BadHello::Malformed),
        (replaced(names(&[(0, b"a\0.org")])), BadHello::Malformed),
        (replaced(names(&[(1, host)])), BadHello::Malformed),
        (replaced(names(&[])), BadHello::Malformed),
        (
            replaced([names(&[(0, host)]), vec![0]].concat()),
            BadHello::Malformed,
        ),
        (
            with_extensions(|all| push(all, 0xfe0d, &[1, 2, 3])),
            BadHello::Encrypted,
        ),
        (
            with_extensions(|all| push(all, 43, &[2, 3, 4])),
            BadHello::Malformed,
        ),
    ];
    for (bytes, expect) in cases {
        assert_eq!(read(&bytes), Err(expect), "{bytes:02x?}");
    }
}

#[test]
fn what_is_not_tls_is_known_by_its_first_bytes() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-",
        b"\x80\x2e\x01",
        b"\x16G",
    ] {
        assert_eq!(read(bytes), Err(BadHello::NotTls), "{bytes:?}");
    }
    assert_eq!(read(&[HANDSHAKE, 3, 1, 0, 0]), Err(BadHello::Malformed));
}

#[test]
fn a_hello_without_end_is_refused() {
    let mut reader = HelloReader::default();
    let endless = [CLIENT_HELLO, 0, 0x3f, 0xff]
        .into_iter()
        .chain(std::iter::repeat(0));
    let mut last = Ok(None);
    for byte in endless.take(HELLO_BYTES_MAX) {
        last = reader.push(&[HANDSHAKE, 3, 1, 0, 1, byte]);
        if last != Ok(None) {
            break;
        }
    }
    assert_eq!(last, Err(BadHello::TooLong));
    assert_eq!(
        read(&in_records(&[CLIENT_HELLO, 1, 0, 0, 0], &[])),
        Err(BadHello::TooLong)
    );
}

proptest! {
    #[test]
    fn real_hellos_in_any_pieces_are_read_as_a_server_reads_them(
        labels in proptest::collection::vec("[a-z]([a-z0-9]{0,10}[a-z])?", 2..5),
        lengths in proptest::collection::vec(1_usize..200, 0..8),
        is_h2 in any::<bool>(),
    ) {
        let name = labels.join(".");
        let alpn: &[&str] = if is_h2 { &["h2"] } else { &[] };
        let bytes = in_records(&message(&hello(&name, alpn)), &lengths);
        prop_assert_eq!(oracle(&bytes), Some(Some(name.clone())));
        prop_assert_eq!(read(&bytes), Ok(Some(name.parse().unwrap())));
    }

    #[test]
    fn a_name_that_is_read_from_a_changed_hello_is_what_a_server_reads(
        changes in proptest::collection::vec((0_usize..400, any::<u8>()), 1..4),
    ) {
        let mut bytes = hello("example.org", &[]);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(Some(host)) = read(&bytes)
            && let Some(name) = oracle(&bytes)
        {
            prop_assert_eq!(name.map(|name| name.to_ascii_lowercase()), host.name().map(str::to_owned));
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        drop(read(&bytes));
    }
}
