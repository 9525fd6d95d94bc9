//! A connection that was allowed: what the command sends first is looked at, then it is passed on.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use zeph_core::network::{Destination, Host, Passage};

use super::hello::{BadHello, HelloReader};
use super::{Opening, Run, Upstream, inspect, retry};

/// Bytes read at once while a ClientHello arrives.
pub(super) const READ_BYTES: usize = 4096;

/// A fatal alert of TLS: access denied. The client need not wait for its own patience to end.
const DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// Passes on what `client` and the host send each other, until one of them ends it.
///
/// Errors: it was refused, which is in the ledger then, or ended by one of the two.
pub(super) async fn run<S>(run: &Arc<Run>, mut client: S, opening: Opening) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Opening { granted, addresses } = opening;
    let destination = granted.destination;
    let begun = match &granted.passage {
        Passage::Raw => Vec::new(),
        Passage::Tls | Passage::Inspected(_) => {
            hello(run, &mut client, &destination, Vec::new()).await?
        }
    };
    if let Passage::Inspected(inspection) = granted.passage {
        return inspect::serve(run, (begun, client), inspection, addresses).await;
    }
    let mut host = run.connect(&addresses).await?;
    host.write_all(&begun).await?;
    let progress = host.meter().progress();
    let passing = async {
        if granted.passage == Passage::Tls {
            second_hello(run, &mut client, &mut host, &destination).await?;
        }
        tokio::io::copy_bidirectional(&mut client, &mut host).await
    };
    tokio::select! {
        passed = passing => passed.map(drop),
        () = progress.stands_still(run.shared.limits.idle_timeout) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Passes on the first record of the server and, where that asks for it, another ClientHello, which must name the same server.
async fn second_hello<S>(
    run: &Run,
    client: &mut S,
    host: &mut Upstream,
    destination: &Destination,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if !retry::first_record(client, host).await? {
        return Ok(());
    }
    let mut before = retry::before_hello(client).await?;
    let begun = before.split_off(before.len().saturating_sub(1));
    let hello = hello(run, client, destination, begun).await?;
    host.write_all(&before).await?;
    host.write_all(&hello).await
}

/// Reads the first message of TLS, of which some was read already, and holds it against the target. Returns all of it.
async fn hello<S>(
    run: &Run,
    client: &mut S,
    destination: &Destination,
    begun: Vec<u8>,
) -> io::Result<Vec<u8>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let patience = run.shared.limits.hello_timeout;
    let mut reader = HelloReader::default();
    let read = tokio::time::timeout(patience, read_hello(client, &mut reader, begun)).await;
    let Ok(read) = read else {
        let secs = patience.as_secs_f64();
        let why = format!(
            "no TLS began within {secs} s; what is not TLS needs `raw = true` in [[tools.sandbox.hosts]]"
        );
        return Err(run.refused(destination, &why));
    };
    let refusal = match read? {
        None => return Err(io::ErrorKind::UnexpectedEof.into()),
        Some(Ok(name)) if name == destination.host => return Ok(reader.into_bytes()),
        Some(Ok(_other)) => BadHello::OtherName,
        Some(Err(refusal)) => refusal,
    };
    if refusal != BadHello::NotTls {
        // The client may have gone.
        drop(client.write_all(&DENIED).await);
    }
    let hint = match refusal {
        BadHello::NotTls => "; what is not TLS needs `raw = true` in [[tools.sandbox.hosts]]",
        _ => "",
    };
    Err(run.refused(destination, &format!("{refusal}{hint}")))
}

/// The name that is asked for; nothing when the client ends before that.
async fn read_hello<S: AsyncRead + Unpin>(
    client: &mut S,
    reader: &mut HelloReader,
    mut more: Vec<u8>,
) -> io::Result<Option<Result<Host, BadHello>>> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match reader.push(&more) {
            Ok(None) => {}
            Ok(Some(name)) => return Ok(Some(Ok(name))),
            Err(refusal) => return Ok(Some(Err(refusal))),
        }
        let n_bytes = client.read(&mut buffer).await?;
        if n_bytes == 0 {
            return Ok(None);
        }
        more = buffer[..n_bytes].to_vec();
    }
}
