//! Web pages from a server on loopback, against the same parser in a native program, and the memory that a body at the limit takes.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use scraper::{Html, Selector};
use serde_json::{Value, json};

use crate::figures::{Bench, Row, compare, verdict};
use crate::host::Host;
use crate::timing::{in_turns, wall};

/// Runs of each side; an odd number, so that the median is one of them.
const N_RUNS: usize = 21;
/// Bytes of the page.
const PAGE_BYTES: usize = 1_000_000;
/// Bytes of a body at the limit (`tools.scrape.max_body_bytes`).
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of a page at the limit (`tools.scrape.max_html_bytes`).
const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How long a host may go on loading before its memory is measured, in looks of `LOOK`.
const LOOKS_MAX: usize = 100;
const LOOK: Duration = Duration::from_millis(200);
/// What is selected.
const SELECT: &str = "li a";

/// `web_scrape` on a page of 1 MB, and what bodies at the limits take.
pub(crate) fn scrape(bench: &Bench) -> Result<Vec<Row>> {
    let page = page();
    let n_links = matches(&page);
    let site = Site::start(vec![
        ("/page", "text/html", page.into_bytes()),
        ("/small", "text/html", page_of(1_000).into_bytes()),
        ("/text", "text/plain", text()),
        ("/limit", "text/html", page_of(PAGE_BYTES_MAX).into_bytes()),
    ])?;
    let port = site.port;
    let directory = &bench.corpus.tiny;
    let host = format!("127.0.0.1:{port}");
    let mut granting = bench.installed.command(directory);
    granting.args(["plugin", "grant", "scrape", "--host", &host]);
    wall(&mut granting)?;
    let private = format!(
        "tools.egress.private=[{{ host = \"127.0.0.1\", ports = [{port}], plain_http = true }}]"
    );
    let args = ["--allow", "*", "--set", &private];
    let start = || bench.installed.run(directory, &args);
    let mut host = start()?;
    let url = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    let fetching = |path: &str| json!({"url": url(path)});
    let selecting = |path: &str| json!({"url": url(path), "select": SELECT, "limit": 1});
    let params = selecting("page");
    let (answer, _) = host.call("web_scrape", &params)?;
    if answer["structured"]["total"].as_u64() != u64::try_from(n_links).ok() {
        bail!(
            "`web_scrape` found {}, scraper {n_links}",
            answer["structured"]["total"]
        );
    }
    let ours = || Ok(host.call("web_scrape", &params)?.1);
    let pair = in_turns(N_RUNS, ours, || natively(port).map(Some))?;
    Ok(vec![
        compare(
            "`web_scrape` on a page of 1 MB",
            "scraper natively",
            4.0,
            &pair,
        ),
        memory(start, "fetch", fetching, "text")?,
        memory(start, "fetch", fetching, "limit")?,
        memory(start, "web_scrape", selecting, "limit")?,
    ])
}

/// The page over the same network, parsed and selected from by this program.
fn natively(port: u16) -> Result<Duration> {
    let started = Instant::now();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(b"GET /page HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, page) = answer
        .split_once("\r\n\r\n")
        .context("the answer has a head")?;
    std::hint::black_box(matches(page));
    Ok(started.elapsed())
}

fn matches(page: &str) -> usize {
    let selector = Selector::parse(SELECT).expect("bug: the selector is valid");
    Html::parse_document(page).select(&selector).count()
}

/// What `tool` takes for a body, beside what a host has that called it before: each time of a host of its own, since the most memory of a
/// process is that of all it did.
fn memory(
    start: impl Fn() -> Result<Host>,
    tool: &str,
    params: impl Fn(&str) -> Value,
    path: &str,
) -> Result<Row> {
    const REACH: f64 = 4.0;
    let mut host = start()?;
    host.call(tool, &params("small"))?;
    let before = settled(&host)?;
    host.call(tool, &params(path))?;
    let taken = host.peak_bytes()?.saturating_sub(before);
    let ratio = taken as f64 / BODY_BYTES_MAX as f64;
    let kind = match path {
        "text" => "the longest text (8 MiB)",
        _ => "the longest web page (2 MiB)",
    };
    Ok(Row {
        figure: format!("memory `{tool}` takes for {kind}"),
        measured: format!("{} MB", taken / 1_000_000),
        reach: format!("≤ {REACH} × the limit of bodies"),
        ratio: verdict(&format!("{ratio:.2}"), ratio <= REACH),
    })
}

/// Resident memory once the host has stopped loading what it may need.
fn settled(host: &Host) -> Result<u64> {
    let mut before = host.resident_bytes()?;
    for _ in 0..LOOKS_MAX {
        std::thread::sleep(LOOK);
        let now = host.resident_bytes()?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
    bail!("the memory of the host does not come to rest")
}

fn page() -> String {
    page_of(PAGE_BYTES)
}

/// A page as they are: menus, headings, paragraphs with links, tables.
fn page_of(n_bytes: usize) -> String {
    let mut page = String::from(
        "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>A large page</title></head><body>",
    );
    for section in 0.. {
        if page.len() >= n_bytes - 400 {
            break;
        }
        page.push_str(&format!(
            "<section id=\"s{section}\"><h2>Section {section}</h2><ul class=\"links\"><li><a href=\"/a/{section}\">first</a></li>\
             <li><a href=\"/b/{section}\">second</a></li></ul><p>Some <em>words</em> about the section, with a \
             <a href=\"/c/{section}\">link</a> and what follows it.</p><table><tr><td>one</td><td>two</td></tr></table></section>"
        ));
    }
    page + "</body></html>"
}

fn text() -> Vec<u8> {
    let line = b"a line of plain text that is not long\n";
    line.iter().copied().cycle().take(BODY_BYTES_MAX).collect()
}

/// A server that answers each path with a body, until the program ends.
struct Site {
    port: u16,
}

impl Site {
    fn start(bodies: Vec<(&'static str, &'static str, Vec<u8>)>) -> Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
        let port = listener.local_addr()?.port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                // A client that goes away is told by its own figure.
                drop(answer(&mut stream, &bodies));
            }
        });
        Ok(Self { port })
    }
}

fn answer(stream: &mut TcpStream, bodies: &[(&str, &str, Vec<u8>)]) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let Some((_, media, body)) = bodies.iter().find(|(known, ..)| *known == path) else {
        return Ok(());
    };
    let len = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {media}\r\ncontent-length: {len}\r\n\r\n"
    )?;
    stream.write_all(body)
}
