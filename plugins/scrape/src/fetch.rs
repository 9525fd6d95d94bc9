//! `fetch`: a page as readable text, or any other text as it is.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Output, ToolError};

use crate::document;
use crate::main_text::{self, MainText, Wish};
use crate::media::Kind;
use crate::page::Page;
use crate::paging::Part;
use crate::settings::Settings;

/// What a page becomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Plain text.
    #[default]
    Text,
    /// Markdown: with headings, emphasis, code, tables.
    Markdown,
}

/// The arguments of `fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The address of the page, with `https://`.
    pub url: String,
    /// What a page becomes: `text`, or `markdown` with headings, code blocks and tables. Other text is returned as it is.
    #[serde(default)]
    pub format: Format,
    /// Keep the addresses of links.
    #[serde(default)]
    pub links: bool,
    /// Return all visible text of the page, with menus and side columns, instead of its main text.
    #[serde(default)]
    pub whole: bool,
    /// The first character to return, from 0: the `next_index` of an earlier call.
    #[serde(default)]
    pub start_index: usize,
    /// Most characters to return.
    #[serde(default = "max_length_default")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_length: usize,
}

fn max_length_default() -> usize {
    20_000
}

/// The structured result of `fetch`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fetched {
    /// The address of the text, after redirects.
    url: String,
    /// The title of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The media type the server names.
    media_type: String,
    /// The charset the text was read as.
    charset: &'static str,
    /// The first character returned.
    start_index: usize,
    /// Where the next call goes on; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_index: Option<usize>,
    /// Characters of the whole text.
    total_chars: usize,
}

/// Runs `fetch`.
///
/// Errors: the page cannot be had, is no text, exceeds the limits, or ends before `start_index`.
pub fn run(args: &Args) -> Result<Output, ToolError> {
    let page = Page::get(&args.url, &Settings::of_host()?)?;
    read(page, args)
}

/// The result for a page that came in.
///
/// Errors: as [`run`], but for the network.
pub fn read(mut page: Page, args: &Args) -> Result<Output, ToolError> {
    let decoded = page.decode();
    let MainText {
        title,
        text,
        mut notes,
    } = match page.kind {
        Kind::Html => {
            let html = document::parse(decoded.text)?;
            main_text::of(html, &page.url, args.wish())
        }
        _ => MainText {
            title: None,
            text: decoded.text,
            notes: Vec::new(),
        },
    };
    notes.extend(page.part.take().map(Cow::Owned));
    let part = Part::of(&text, args.start_index, args.max_length)?;
    let shown = shown(&part, title.as_deref(), notes, args);
    Ok(Output::text(shown).structured(&Fetched {
        url: page.url.into(),
        title,
        media_type: page.media.essence,
        charset: decoded.charset,
        start_index: part.start,
        next_index: part.next,
        total_chars: part.total,
    }))
}

impl Args {
    fn wish(&self) -> Wish {
        Wish {
            markdown: self.format == Format::Markdown,
            links: self.links,
            whole: self.whole,
        }
    }
}

fn shown(
    part: &Part<'_>,
    title: Option<&str>,
    mut notes: Vec<Cow<'static, str>>,
    args: &Args,
) -> String {
    let mut blocks = Vec::new();
    if let Some(title) = title.filter(|_| part.start == 0) {
        let mark = if args.format == Format::Markdown {
            "# "
        } else {
            ""
        };
        blocks.push(format!("{mark}{title}"));
    }
    if !part.text.is_empty() {
        blocks.push(part.text.to_owned());
    }
    if part.total == 0 {
        let why = "the page has no text; it may be made by scripts, which do not run here";
        notes.insert(0, Cow::Borrowed(why));
    }
    if part.start == 0 && !notes.is_empty() {
        blocks.push(format!("[{}]", notes.join("; ")));
    }
    if let Some(next) = part.next {
        blocks.push(format!(
            "[characters {} to {} of {}; `start_index={next}` continues]",
            part.start,
            next - 1,
            part.total
        ));
    }
    blocks.join("\n\n")
}

#[cfg(test)]
mod tests;
