//! `web_scrape`: the elements of a page that a CSS selector names.

mod selector;

use std::str::FromStr;

use schemars::JsonSchema;
use scraper::ElementRef;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Output, ToolError, counted};

use crate::media::Kind;
use crate::page::Page;
use crate::settings::Settings;
use crate::text::clean;
use crate::{document, table, text, visible};

/// The arguments of `web_scrape`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The address of the page, with `https://`.
    pub url: String,
    /// A CSS selector, such as `h1`, `table.prices td:nth-child(2)` or `a[href$=".pdf"]`.
    pub select: String,
    /// What to return of each element: `text`, `html` (with its own tag) or `attr:NAME`, the value of an attribute.
    #[serde(default = "extract_default")]
    pub extract: String,
    /// Most elements to return. All are counted.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: usize,
}

fn extract_default() -> String {
    "text".to_owned()
}

fn limit_default() -> usize {
    10
}

/// What is returned of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Extract {
    Text,
    Html,
    Attribute(String),
}

impl FromStr for Extract {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        match text.trim() {
            "text" => Ok(Self::Text),
            "html" => Ok(Self::Html),
            other => match other.strip_prefix("attr:").map(str::trim) {
                Some(name) if !name.is_empty() => Ok(Self::Attribute(name.to_ascii_lowercase())),
                _ => Err(ToolError::invalid_parameters(format!(
                    "`extract` is `{}`; it can be `text`, `html` or `attr:NAME`, as in `attr:href`",
                    clean(other)
                ))),
            },
        }
    }
}

impl Extract {
    /// Whether `element` has it.
    fn is_of(&self, element: &ElementRef<'_>) -> bool {
        match self {
            Self::Text | Self::Html => true,
            Self::Attribute(name) => element.value().attr(name).is_some(),
        }
    }

    /// What it is of `element`; none when that has no such attribute.
    fn of(&self, element: &ElementRef<'_>) -> Option<String> {
        match self {
            Self::Text => Some(text::of(element)),
            Self::Html => Some(element.html()),
            Self::Attribute(name) => element.value().attr(name).map(clean),
        }
    }
}

/// The structured result of `web_scrape`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Scraped {
    /// The address of the page, after redirects.
    url: String,
    /// What was asked for of each element, in the order of the page.
    matches: Vec<String>,
    /// Elements that match and are seen on the page.
    total: usize,
    /// Elements that match but are hidden on the page, and left out.
    hidden: usize,
}

/// Runs `web_scrape`.
///
/// Errors: the selector is not valid, the page cannot be had, is not HTML or exceeds the limits, or nothing matches.
pub fn run(args: &Args) -> Result<Output, ToolError> {
    selector::parse(&args.select)?;
    Extract::from_str(&args.extract)?;
    let page = Page::get(&args.url, &Settings::of_host()?)?;
    read(page, args)
}

/// The result for a page that came in.
///
/// Errors: as [`run`], but for the network.
pub fn read(mut page: Page, args: &Args) -> Result<Output, ToolError> {
    let selector = selector::parse(&args.select)?;
    let extract = Extract::from_str(&args.extract)?;
    if page.kind != Kind::Html {
        let kind = if page.media.essence.is_empty() {
            "plain text".to_owned()
        } else {
            clean(&page.media.essence)
        };
        return Err(ToolError::permanent(format!(
            "`{}` is {kind}, not HTML; `fetch` returns it as it is",
            page.url
        )));
    }
    let mut html = document::parse(page.decode().text)?;
    let found: Vec<_> = html.select(&selector).map(|element| element.id()).collect();
    let taken = visible::hide(&mut html);
    if extract == Extract::Text {
        table::fill(&mut html);
    }
    let elements: Vec<ElementRef<'_>> = found
        .iter()
        .filter_map(|id| ElementRef::wrap(html.tree.get(*id)?))
        .filter(visible::is_shown)
        // All the text of one may be hidden, though it is not.
        .filter(|element| {
            extract != Extract::Text
                || !taken.reduced.contains(&element.id())
                || element.text().any(|text| !text.trim().is_empty())
        })
        .collect();
    let hidden = found.len() - elements.len();
    let having = elements.iter().filter(|element| extract.is_of(element));
    let total = having.clone().count();
    if total == 0 {
        return Err(no_match(args, &extract, elements.len(), hidden));
    }
    let shown_ones = having.take(args.limit.max(1));
    let matches: Vec<String> = shown_ones
        .filter_map(|element| extract.of(element))
        .collect();
    let text = shown(&matches, total, hidden, page.part.take());
    Ok(Output::text(text).structured(&Scraped {
        url: page.url.into(),
        matches,
        total,
        hidden,
    }))
}

fn no_match(args: &Args, extract: &Extract, n_elements: usize, n_hidden: usize) -> ToolError {
    let select = clean(&args.select);
    ToolError::not_found(match extract {
        Extract::Attribute(name) if n_elements > 0 => {
            format!(
                "{} `{select}`, but none has an attribute `{}`",
                counted(n_elements, "element matches", "elements match"),
                clean(name)
            )
        }
        _ if n_hidden > 0 => {
            format!(
                "{} `{select}`, but the page hides what matches",
                counted(n_hidden, "element matches", "elements match")
            )
        }
        _ => format!(
            "no element matches `{select}`; `fetch` shows what the page says, and pages made by scripts come without their content"
        ),
    })
}

fn shown(matches: &[String], total: usize, n_hidden: usize, part: Option<String>) -> String {
    let is_long = matches.iter().any(|text| text.contains('\n'));
    let mut text = matches.join(if is_long { "\n\n" } else { "\n" });
    let mut notes = Vec::new();
    if total > matches.len() {
        notes.push(format!(
            "{} of {total} matches; `limit` shows more",
            matches.len()
        ));
    }
    if n_hidden > 0 {
        notes.push(format!(
            "{} on the page and left out",
            counted(
                n_hidden,
                "further match is hidden",
                "further matches are hidden"
            )
        ));
    }
    notes.extend(part);
    if !notes.is_empty() {
        text.push_str(&format!("\n\n[{}]", notes.join("; ")));
    }
    text
}

#[cfg(test)]
mod tests;
