//! What no reader of the page would see, taken out: it is where instructions for models are hidden.
//!
//! Only what an element says of itself counts (attributes, inline style, the usual class for screen readers): style sheets are not read.
//! Where one of them may be what makes a text readable, the text stays.

use std::collections::HashSet;

use ego_tree::iter::Edge;
use ego_tree::{NodeId, NodeRef};
use scraper::node::{Element, Node};
use scraper::{ElementRef, Html};

use crate::style::{Color, Fade, Font, Paint, Style};

/// Text of this size or less is not read, in pixels.
const TINY_PX: f32 = 3.0;

/// Classes that move text off the screen on nearly every site that has them.
const OFFSCREEN_CLASSES: [&str; 4] = [
    "sr-only",
    "visually-hidden",
    "screen-reader-text",
    "visuallyhidden",
];

/// Elements that browsers show nothing of.
const ABSENT: [&str; 2] = ["noembed", "noframes"];
/// Bytes of what browsers without ruby put around it, a bracket. They are kept, since they part it from the text.
const BRACKET_BYTES: usize = 4;
/// Elements that are shown in another way than by their text, which is for browsers that do not know them.
const REPLACED: [&str; 4] = ["audio", "video", "meter", "progress"];
/// How the attributes begin by which scripts find what they bring in.
const APPEARING: [&str; 7] = [
    "data-aos",
    "data-w-id",
    "data-framer",
    "data-sal",
    "data-anim",
    "data-scroll",
    "data-sr",
];

/// What was taken out.
#[derive(Debug, Default)]
pub struct Hidden {
    /// Elements that lost a text or an element.
    pub reduced: HashSet<NodeId>,
    /// A text was in the color of its background.
    pub has_faint: bool,
    /// Something was transparent that scripts may show.
    pub has_transparent: bool,
}

/// Takes what is not seen out of the tree: hidden elements, unreadable texts, comments.
pub fn hide(html: &mut Html) -> Hidden {
    let (found, hidden) = unseen(html);
    for id in found {
        if let Some(mut node) = html.tree.get_mut(id) {
            node.detach();
        }
    }
    hidden
}

/// Whether a node is still part of the page.
pub fn is_shown(element: &ElementRef<'_>) -> bool {
    element
        .ancestors()
        .last()
        .is_some_and(|top| matches!(top.value(), Node::Document))
}

fn unseen(html: &Html) -> (Vec<NodeId>, Hidden) {
    let page = Page::of(html);
    let (mut found, mut hidden) = (Vec::new(), Hidden::default());
    let mut looks = vec![Looks::default()];
    let mut inside = None;
    for edge in html.tree.root().traverse() {
        match edge {
            Edge::Open(node) if inside.is_none() => match node.value() {
                Node::Element(element) => {
                    let style = Style::of(element);
                    let is_transparent = page.keeps_transparent(element, &style);
                    let is_gone = style.is_hidden || is_hidden(element) || is_long_bracket(node);
                    if is_gone || is_transparent {
                        hidden.has_transparent |= is_transparent && page.has_scripts;
                        found.push(node.id());
                        inside = Some(node.id());
                    } else {
                        let around = looks.last().copied().unwrap_or_default();
                        looks.push(around.inside(element, &style, page.has_colors));
                    }
                }
                Node::Text(text) if !text.trim().is_empty() => {
                    let looks = looks.last().copied().unwrap_or_default();
                    hidden.has_faint |= looks.is_faint();
                    if looks.is_unreadable() {
                        found.push(node.id());
                    }
                }
                Node::Comment(_) | Node::ProcessingInstruction(_) => found.push(node.id()),
                _ => {}
            },
            Edge::Close(node) if inside == Some(node.id()) => inside = None,
            Edge::Close(node) if inside.is_none() && node.value().is_element() => {
                looks.pop();
            }
            _ => {}
        }
    }
    hidden.reduced = reduced(html, &found);
    (found, hidden)
}

/// The elements around what is taken out, but for comments.
fn reduced(html: &Html, found: &[NodeId]) -> HashSet<NodeId> {
    let mut reduced = HashSet::new();
    for node in found.iter().filter_map(|id| html.tree.get(*id)) {
        if node.value().is_comment() {
            continue;
        }
        for around in node.ancestors() {
            // Whatever is around one that is known is known too.
            if !reduced.insert(around.id()) {
                break;
            }
        }
    }
    reduced
}

/// What the rest of a page can make of an element.
struct Page {
    has_scripts: bool,
    /// There is a style sheet that may set backgrounds.
    has_colors: bool,
}

impl Page {
    fn of(html: &Html) -> Self {
        let mut page = Self {
            has_scripts: false,
            has_colors: false,
        };
        for element in html.tree.nodes().filter_map(ElementRef::wrap) {
            match element.value().name() {
                "script" => page.has_scripts = true,
                "link" => {
                    let mut kinds = element.attr("rel").unwrap_or_default().split_whitespace();
                    page.has_colors |= kinds.any(|kind| kind.eq_ignore_ascii_case("stylesheet"));
                }
                "style" => {
                    let mut texts = element.text();
                    page.has_colors |=
                        texts.any(|text| text.contains("background") || text.contains("@import"));
                }
                _ => {}
            }
        }
        page
    }

    /// Whether a transparent element stays so: it has no mark of those that scripts bring in.
    fn keeps_transparent(&self, element: &Element, style: &Style) -> bool {
        let is_marked = || {
            style.fade == Some(Fade::Animated)
                || element
                    .attrs()
                    .any(|(name, _)| APPEARING.iter().any(|mark| name.starts_with(mark)))
        };
        style.fade.is_some() && !(self.has_scripts && is_marked())
    }
}

/// Whether the attributes of `element`, but for its style, or its kind hide it.
fn is_hidden(element: &Element) -> bool {
    let kind = element.name();
    ABSENT.contains(&kind)
        || (kind == "dialog" && element.attr("open").is_none())
        || element.attrs().any(|(name, value)| match name {
            "hidden" => !value.eq_ignore_ascii_case("until-found"),
            "popover" => true,
            "aria-hidden" => value.trim().eq_ignore_ascii_case("true"),
            "class" => value
                .split_ascii_whitespace()
                .any(|class| OFFSCREEN_CLASSES.contains(&class)),
            "type" => kind == "input" && value.eq_ignore_ascii_case("hidden"),
            _ => false,
        })
}

fn is_long_bracket(node: NodeRef<'_, Node>) -> bool {
    let bracket = ElementRef::wrap(node).filter(|element| element.value().name() == "rp");
    bracket.is_some_and(|bracket| bracket.text().map(str::len).sum::<usize>() > BRACKET_BYTES)
}

/// What text inherits from the elements around it.
#[derive(Clone, Copy)]
struct Looks {
    color: Option<Paint>,
    background: Paint,
    font_px: f32,
    is_replaced: bool,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            color: None,
            background: Paint::Known(Color::WHITE),
            font_px: 16.0,
            is_replaced: false,
        }
    }
}

impl Looks {
    fn inside(self, element: &Element, style: &Style, has_colors: bool) -> Self {
        let kind = element.name();
        let has_sheet = has_colors
            && !matches!(kind, "html" | "body")
            && (element.attr("class").is_some() || element.attr("id").is_some());
        let background = match (style.background, self.background) {
            // A style sheet may have one for it.
            (None, _) if has_sheet => Paint::Unknown,
            (None, around) => around,
            (Some(Paint::Known(color)), around) if color.is_transparent() => around,
            (Some(Paint::Known(color)), Paint::Known(around)) => Paint::Known(color.over(&around)),
            (Some(Paint::Known(color)), Paint::Unknown) if color.is_opaque() => Paint::Known(color),
            (Some(_), _) => Paint::Unknown,
        };
        Self {
            color: style.color.or(self.color),
            background,
            font_px: match style.font {
                None => self.font_px,
                Some(Font::Pixels(px)) => px,
                Some(Font::Times(times)) => self.font_px * times,
            },
            is_replaced: self.is_replaced || REPLACED.contains(&kind),
        }
    }

    fn is_unreadable(&self) -> bool {
        self.font_px <= TINY_PX || self.is_replaced || self.is_faint()
    }

    fn is_faint(&self) -> bool {
        match (self.color, self.background) {
            (Some(Paint::Known(color)), Paint::Known(background)) => color.vanishes_on(&background),
            (Some(Paint::Known(color)), Paint::Unknown) => color.is_transparent(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
