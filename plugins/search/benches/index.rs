//! How long it takes to read a tree of code, and to search it: `cargo bench -p zeph-plugin-search -- DIR`, by default this repository.
//! It runs natively, as the peer of `zeph-host index DIR` and of a call of `search_code`, which run the same code in a guest.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use zeph_plugin_search::index::file_of;
use zeph_plugin_search::rank::{Layers, Query, search};
use zeph_plugin_search::tool::Ground;

const QUERIES: [&str; 4] = [
    "AuthorizedCall",
    "read only grant",
    "search",
    "parse_http_url",
];
const HOUR: Duration = Duration::from_secs(3_600);

fn main() {
    let given = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let top = given.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../..").to_owned());
    let top = PathBuf::from(top).canonicalize().expect("a directory");
    let cache = tempfile::tempdir().expect("a directory");
    let ground = Ground {
        file: Some(file_of(cache.path(), &top)),
        top,
        below: String::new(),
        time: Some(HOUR),
    };
    let began = Instant::now();
    let (index, state) = ground.index(".").expect("a directory that can be read");
    let took = began.elapsed();
    let files = index.files.iter().map(|file| ground.top.join(&file.path));
    let texts = files.filter_map(|path| std::fs::read(path).ok());
    let lines: usize = texts
        .map(|text| text.split(|byte| *byte == b'\n').count())
        .sum();
    println!("{} files, {lines} lines read in {took:?}", state.files);
    let layers = Layers {
        definitions: true,
        references: true,
        text: true,
    };
    for query in QUERIES {
        let began = Instant::now();
        let (index, _) = ground.index(".").expect("a directory that can be read");
        let loaded = began.elapsed();
        let hits = search(&index, "", &Query::of(query), (layers, &[]));
        println!(
            "`{query}`: {} hits in {:?}, {loaded:?} of it for the index",
            hits.len(),
            began.elapsed()
        );
    }
}
