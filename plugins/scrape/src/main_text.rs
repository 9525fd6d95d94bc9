//! The text a page is about, without what surrounds it on every page of its site; as plain text or as Markdown.
//!
//! The choice of the main text is dom_smoothie's. It gets a page without what readers do not see, so that nothing hidden is chosen.

mod address;

use std::borrow::Cow;
use std::collections::HashSet;

use dom_query::Document;
use dom_smoothie::{CandidateSelectMode, Config, Readability};
use ego_tree::NodeId;
use html5ever::local_name;
use html5ever::tendril::StrTendril;
use scraper::node::Node;
use scraper::{ElementRef, Html};
use url::Url;

use crate::{document, table, text, visible};

/// How the text is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish {
    /// As Markdown rather than as plain text.
    pub markdown: bool,
    /// With the addresses of links and images.
    pub links: bool,
    /// All of the page rather than its main text.
    pub whole: bool,
}

/// The text of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MainText {
    /// The title of the page.
    pub title: Option<String>,
    /// The text.
    pub text: String,
    /// Why it is not what was wished for, and what was left out.
    pub notes: Vec<Cow<'static, str>>,
}

/// Elements whose text is not for readers.
const SILENT: [&str; 9] = [
    "script", "style", "template", "noscript", "iframe", "object", "svg", "canvas", "datalist",
];
/// Elements to press or to fill in. Their text is a part of the whole page, but not of its main text.
const CONTROLS: [&str; 4] = ["button", "input", "select", "textarea"];

/// What the tree of a page may take for dom_smoothie to choose from it: that makes a tree of its own, and copies it for each attempt.
const CHOICE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Reads a page that stands at `url`.
pub fn of(mut html: Html, url: &Url, wish: Wish) -> MainText {
    let base = address::base(&html, url);
    let sent = address::sends_on(&html, &base);
    let hidden = visible::hide(&mut html);
    let title = title(&html);
    drop_machinery(&mut html, wish.whole);
    if wish.links {
        address::complete(&mut html, &base);
    }
    table::fill(&mut html);
    let is_large = document::weight(&html) > CHOICE_BYTES_MAX;
    let (text, note) = match (is_large, wish) {
        (false, wish) => chosen(html, url, wish),
        (
            true,
            Wish {
                markdown, whole, ..
            },
        ) => {
            let note = match (whole, markdown) {
                (true, false) => None,
                (true, true) => Some("the page is too large for Markdown: this is plain text"),
                (false, _) => Some(
                    "the page is too large to find its main text: this is all visible text of the page",
                ),
            };
            (plain(html, wish.links), note)
        }
    };
    let faint = "text in the color of its background is left out";
    let transparent = "parts with `opacity: 0` are left out; scripts may show them";
    let notes = [
        note.filter(|_| !text.trim().is_empty()),
        hidden.has_faint.then_some(faint),
        hidden.has_transparent.then_some(transparent),
    ];
    let notes = notes.into_iter().flatten().map(Cow::Borrowed);
    let sent = sent.map(|url| format!("the page sends its readers on to {url}").into());
    // The first row of a table may begin with an empty cell.
    let text = text.trim_end();
    let text = text.trim_start_matches(|letter: char| letter != '\t' && letter.is_whitespace());
    MainText {
        title,
        text: text::clean(text),
        notes: notes.chain(sent).collect(),
    }
}

/// The main text of a page, or all of its text when there is none or all is wished for.
fn chosen(mut html: Html, url: &Url, wish: Wish) -> (String, Option<&'static str>) {
    if wish.whole && !wish.markdown {
        return (plain(html, wish.links), None);
    }
    if wish.markdown {
        table::prepare_for_markdown(&mut html);
    }
    let source = StrTendril::from(html.html());
    // One tree at a time.
    drop(html);
    let main = match wish.whole {
        true => None,
        false => main_html(source.clone(), url),
    };
    let note = match (&main, wish.whole) {
        (None, false) => Some("no main text was found: this is all visible text of the page"),
        _ => None,
    };
    let part = match main {
        Some(part) => {
            drop(source);
            part
        }
        None => source,
    };
    let text = match wish.markdown {
        true => markdown(part, wish.links),
        false => plain(Html::parse_document(&part), wish.links),
    };
    (text, note)
}

/// The title in the head of the page: one elsewhere is no text for readers.
fn title(html: &Html) -> Option<String> {
    let mut elements = html
        .root_element()
        .descendants()
        .filter_map(ElementRef::wrap);
    let title = elements.find(|element| {
        let parent = element.parent().and_then(ElementRef::wrap);
        element.value().name() == "title"
            && parent.is_some_and(|parent| parent.value().name() == "head")
    })?;
    let title = text::of(&title);
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then_some(title)
}

/// Takes out what is no text for readers: scripts, marks that link a heading to itself, and controls unless the page is wished for
/// whole. Terms and their descriptions become paragraphs, and choices lists, since Markdown has no others.
fn drop_machinery(html: &mut Html, whole: bool) {
    let nodes = html.tree.nodes().filter_map(ElementRef::wrap);
    let titles: HashSet<NodeId> = nodes.filter(is_title).map(|button| button.id()).collect();
    let nodes: Vec<NodeId> = html.tree.nodes().map(|node| node.id()).collect();
    for id in nodes {
        let Some(element) = html.tree.get(id).and_then(ElementRef::wrap) else {
            continue;
        };
        let name = match element.value().name() {
            "dt" | "dd" => Some(local_name!("p")),
            "button" if whole || titles.contains(&id) => Some(local_name!("span")),
            "select" if whole => Some(local_name!("ul")),
            "option" if whole => Some(local_name!("li")),
            "textarea" if whole => Some(local_name!("div")),
            _ => None,
        };
        let is_machinery = name.is_none() && is_machinery(&element);
        let Some(mut node) = html.tree.get_mut(id) else {
            continue;
        };
        if is_machinery {
            node.detach();
        } else if let (Some(name), Node::Element(element)) = (name, node.value()) {
            element.name.local = name;
        }
    }
}

fn is_machinery(element: &ElementRef<'_>) -> bool {
    let name = element.value().name();
    SILENT.contains(&name) || CONTROLS.contains(&name) || (name == "a" && is_permalink(element))
}

/// Whether a button is the title of a part that it opens, as in most lists of questions: its text is content.
fn is_title(element: &ElementRef<'_>) -> bool {
    if element.value().name() != "button" {
        return false;
    }
    let opens = || {
        let opens_part =
            element.attr("aria-expanded").is_some() && element.attr("aria-controls").is_some();
        opens_part
            || ["data-bs-toggle", "data-toggle"]
                .iter()
                .any(|name| element.attr(name) == Some("collapse"))
    };
    let mut around = element.ancestors().filter_map(ElementRef::wrap);
    let place = around.find_map(|element| match element.value().name() {
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "summary" | "dt" => Some(true),
        "nav" | "header" | "footer" | "form" => Some(false),
        _ => None,
    });
    place.unwrap_or_else(opens)
}

fn is_permalink(link: &ElementRef<'_>) -> bool {
    let text: String = link.text().collect();
    matches!(text.trim(), "¶" | "§" | "#" | "🔗")
        && link
            .value()
            .attr("href")
            .is_some_and(|href| href.contains('#'))
}

/// The part of a page that holds its main text; none when there is none.
fn main_html(source: StrTendril, url: &Url) -> Option<StrTendril> {
    let config = Config {
        disable_json_ld: true,
        candidate_select_mode: CandidateSelectMode::DomSmoothie,
        ..Config::default()
    };
    let mut readability = Readability::new(source, Some(url.as_str()), Some(config)).ok()?;
    Some(readability.parse().ok()?.content)
}

/// Elements that begin and end a block of their own, where a page has no style, and that the writer of Markdown takes for words of a line.
const BLOCKS: &str = "address, aside, center, details, dialog, fieldset, figcaption, figure, footer, form, header, hgroup, legend, main, \
                      nav, search, summary";

/// Replaces `&` in link addresses while the Markdown is written. The writer escapes `&` as `&amp;`, and a model copies an address unescaped.
/// It is a noncharacter: a page has no use for it.
const AMPERSAND: char = '\u{fdd0}';

fn markdown(html: StrTendril, links: bool) -> String {
    let document = Document::from(html);
    document.select(BLOCKS).rename("div");
    // A title is shown when the pointer rests on its element.
    document.select("[title]").remove_attr("title");
    if !links {
        document.select("img, picture").remove();
        document.select("body").strip_elements(&["a"]);
    }
    for (selector, attribute) in [("a[href]", "href"), ("img[src]", "src")] {
        for element in document.select(selector).iter() {
            let address = element.attr(attribute).unwrap_or_default();
            if address.contains('&') {
                element.set_attr(attribute, &address.replace('&', &AMPERSAND.to_string()));
            }
        }
    }
    let body = document.select("body");
    let written = body.nodes().first().map(|body| body.md(None));
    written.map_or_else(String::new, |text| text.replace(AMPERSAND, "&"))
}

fn plain(mut html: Html, links: bool) -> String {
    if links {
        address::write(&mut html);
    }
    text::of(&html.root_element())
}

#[cfg(test)]
mod tests;
