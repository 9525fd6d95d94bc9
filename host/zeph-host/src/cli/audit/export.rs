//! `zeph-host audit export`: the record of calls for other programs.

mod csv;
mod otlp;

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use url::Url;
use zeph_config::{Config, TelemetrySettings};
use zeph_core::id::CallId;
use zeph_egress::{Egress, OwnClient, OwnLimits};
use zeph_store::{AuditFilter, AuditRecord, Store};

use crate::audit::checkpoints::post;
use crate::cli::args::{AuditExport, AuditFormat};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::{out, time};
use crate::clock::now_ms;

/// Calls of one page, and so of one request to a collector.
const PAGE: u32 = 500;

/// Calls of one and the same millisecond at most.
const PAGE_MAX: u32 = 1 << 20;

/// Where an export goes.
enum Sink {
    Stdout,
    File(BufWriter<File>),
    Collector {
        url: String,
        client: Box<OwnClient>,
        headers: Vec<(HeaderName, HeaderValue)>,
    },
}

/// Exports the calls.
pub(super) async fn run(
    store: &Store,
    config: &Config,
    options: AuditExport,
) -> Result<Exit, CliError> {
    if options.endpoint.is_some() && options.format != AuditFormat::Otlp {
        return Err(CliError::user("`--endpoint` takes OTLP only")
            .hint("add `--format otlp`, or write to a file with `--output FILE`"));
    }
    let mut pages = Pages::new(store, &options)?;
    let mut sink = Sink::new(config, &options)?;
    if options.format == AuditFormat::Csv {
        sink.write(csv::head()).await?;
    }
    while let Some(page) = pages.next().await? {
        sink.write(text(&page, options.format)?).await?;
    }
    sink.end()?;
    Ok(Exit::Success)
}

fn text(page: &[AuditRecord], format: AuditFormat) -> Result<String, CliError> {
    let broken = |error| CliError::internal("a record cannot be printed").because(error);
    match format {
        AuditFormat::Jsonl => {
            let lines = page.iter().map(serde_json::to_string);
            let lines: Vec<String> = lines.collect::<Result<_, _>>().map_err(broken)?;
            Ok(lines.join("\n") + "\n")
        }
        AuditFormat::Csv => {
            let rows = page.iter().map(csv::row);
            rows.collect::<Result<_, _>>().map_err(broken)
        }
        AuditFormat::Otlp => Ok(otlp::request(page).map_err(broken)?.to_string() + "\n"),
    }
}

/// The calls, page by page, oldest first.
struct Pages<'a> {
    store: &'a Store,
    filter: AuditFilter,
    /// The calls of the newest millisecond that was read.
    seen: HashSet<CallId>,
    is_over: bool,
}

impl<'a> Pages<'a> {
    fn new(store: &'a Store, options: &AuditExport) -> Result<Self, CliError> {
        let now = now_ms();
        let moment = |text: &Option<String>| {
            let read = text.as_deref().map(|text| time::read(text, now));
            read.transpose().map_err(CliError::user)
        };
        Ok(Self {
            store,
            filter: AuditFilter {
                conversation: options.conversation,
                since_ms: moment(&options.since)?,
                until_ms: moment(&options.until)?,
                newest_first: false,
                ..AuditFilter::newest(PAGE)
            },
            seen: HashSet::new(),
            is_over: false,
        })
    }

    async fn next(&mut self) -> Result<Option<Vec<AuditRecord>>, CliError> {
        while !self.is_over {
            let mut page = self.store.audit_query(self.filter.clone()).await?;
            let newest_ms = page.last().map(|record| record.begin.at_ms);
            self.is_over = page.len() < self.filter.limit as usize;
            page.retain(|record| !self.seen.contains(&record.begin.call_id));
            let is_stuck = newest_ms == self.filter.since_ms;
            self.filter.limit = match is_stuck {
                true => self.filter.limit.saturating_mul(2).min(PAGE_MAX),
                false => PAGE,
            };
            if !is_stuck {
                self.seen.clear();
            }
            let newest = page
                .iter()
                .filter(|record| Some(record.begin.at_ms) == newest_ms);
            self.seen.extend(newest.map(|record| record.begin.call_id));
            self.is_over |= is_stuck && self.filter.limit == PAGE_MAX && page.is_empty();
            self.filter.since_ms = newest_ms.or(self.filter.since_ms);
            if !page.is_empty() {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }
}

impl Sink {
    fn new(config: &Config, options: &AuditExport) -> Result<Self, CliError> {
        match (&options.output, &options.endpoint) {
            (Some(path), _) => Ok(Self::File(BufWriter::new(created(path)?))),
            (None, Some(url)) => Self::collector(config, url),
            (None, None) => Ok(Self::Stdout),
        }
    }

    fn collector(config: &Config, url: &str) -> Result<Self, CliError> {
        let limits = OwnLimits {
            time: std::time::Duration::from_secs(10),
            bytes: 64 * 1024,
        };
        let client = OwnClient::new(&Egress::new(&config.egress), &[url], limits);
        Ok(Self::Collector {
            url: url.to_owned(),
            client: Box::new(client.map_err(|error| CliError::user(error.to_string()))?),
            headers: headers(url)?,
        })
    }

    async fn write(&mut self, text: String) -> Result<(), CliError> {
        match self {
            Self::Stdout => out::data(&text),
            Self::File(file) => file.write_all(text.as_bytes()).map_err(unwritten),
            Self::Collector {
                url,
                client,
                headers,
            } => {
                let sent = post(client, url, Bytes::from(text), headers.clone()).await;
                sent.map_err(|why| {
                    CliError::internal(format!("`{url}` does not take the records: {why}"))
                })
            }
        }
    }

    fn end(self) -> Result<(), CliError> {
        match self {
            Self::File(mut file) => file.flush().map_err(unwritten),
            Self::Stdout | Self::Collector { .. } => Ok(()),
        }
    }
}

fn created(path: &Path) -> Result<File, CliError> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    options.open(path).map_err(|error| {
        CliError::user(format!("`{}` cannot be created", path.display())).because(error)
    })
}

fn unwritten(error: std::io::Error) -> CliError {
    CliError::internal("the export cannot be written").because(error)
}

/// The headers that the standard variables set for a collector, when it is the one meant: they may hold a key.
fn headers(url: &str) -> Result<Vec<(HeaderName, HeaderValue)>, CliError> {
    let settings = TelemetrySettings::of_process().map_err(CliError::user)?;
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    let settings = settings.filter(|settings| origin(&settings.url) == origin(url));
    let headers = settings.into_iter().flat_map(|settings| settings.headers);
    let headers = headers.filter_map(|(name, value)| {
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    });
    Ok(headers.collect())
}
