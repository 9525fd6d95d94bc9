//! `web_scrape` and `fetch`: pages of granted hosts, as the elements a selector names or as readable text.
//!
//! A page comes in through the host, which decides what may be reached (`page`), becomes text (`charset`) and then a tree (`document`),
//! loses what no reader would see (`visible`), gets its tables in order (`table`), and is selected from (`web_scrape`) or read
//! (`main_text`, `fetch`). Everything after `page` is pure and runs natively as well.

pub mod charset;
pub mod document;
pub mod fetch;
pub mod main_text;
pub mod media;
pub mod page;
pub mod paging;
pub mod settings;
pub mod style;
pub mod table;
pub mod text;
pub mod tools;
pub mod visible;
pub mod web_scrape;
pub mod xhtml;

zeph_plugin::export!(crate::tools::tools, manifest = "../plugin.toml");
