//! What no reader of the page would see, taken out: it is where instructions for models are hidden.
//!
//! Only what an element says of itself counts (attributes, inline style, the usual class for screen readers): style sheets are not read.

use ego_tree::NodeId;
use ego_tree::iter::Edge;
use scraper::node::{Element, Node};
use scraper::{ElementRef, Html};

use crate::style::{Color, Style};

/// Text of this size or less is not read, in pixels.
const TINY_PX: f32 = 3.0;

/// Classes that move text off the screen on nearly every site that has them.
const OFFSCREEN_CLASSES: [&str; 4] = [
    "sr-only",
    "visually-hidden",
    "screen-reader-text",
    "visuallyhidden",
];

/// Takes what is not seen out of the tree: hidden elements, unreadable texts, comments.
pub fn hide(html: &mut Html) {
    for id in unseen(html) {
        if let Some(mut node) = html.tree.get_mut(id) {
            node.detach();
        }
    }
}

/// Whether a node is still part of the page.
pub fn is_shown(element: &ElementRef<'_>) -> bool {
    element
        .ancestors()
        .last()
        .is_some_and(|top| matches!(top.value(), Node::Document))
}

fn unseen(html: &Html) -> Vec<NodeId> {
    let mut found = Vec::new();
    let mut looks = vec![Looks::default()];
    let mut hidden = None;
    for edge in html.tree.root().traverse() {
        match edge {
            Edge::Open(node) if hidden.is_none() => match node.value() {
                Node::Element(element) => {
                    let style = Style::of(element);
                    if style.is_hidden || is_hidden(element) {
                        found.push(node.id());
                        hidden = Some(node.id());
                    } else {
                        looks.push(looks.last().copied().unwrap_or_default().inside(&style));
                    }
                }
                Node::Text(text)
                    if looks.last().is_some_and(Looks::is_unreadable)
                        && !text.trim().is_empty() =>
                {
                    found.push(node.id());
                }
                Node::Comment(_) | Node::ProcessingInstruction(_) => found.push(node.id()),
                _ => {}
            },
            Edge::Close(node) if hidden == Some(node.id()) => hidden = None,
            Edge::Close(node) if hidden.is_none() && node.value().is_element() => {
                looks.pop();
            }
            _ => {}
        }
    }
    found
}

/// Whether the attributes of `element`, but for its style, or its kind hide it.
fn is_hidden(element: &Element) -> bool {
    let kind = element.name();
    (kind == "dialog" && element.attr("open").is_none())
        || element.attrs().any(|(name, value)| match name {
            "hidden" => !value.eq_ignore_ascii_case("until-found"),
            "aria-hidden" => value.trim().eq_ignore_ascii_case("true"),
            "class" => value
                .split_ascii_whitespace()
                .any(|class| OFFSCREEN_CLASSES.contains(&class)),
            "type" => kind == "input" && value.eq_ignore_ascii_case("hidden"),
            _ => false,
        })
}

/// What text inherits from the elements around it.
#[derive(Clone, Copy)]
struct Looks {
    color: Option<Color>,
    background: Color,
    font_px: f32,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            color: None,
            background: Color::WHITE,
            font_px: 16.0,
        }
    }
}

impl Looks {
    fn inside(self, style: &Style) -> Self {
        Self {
            color: style.color.or(self.color),
            background: style.background.unwrap_or(self.background),
            font_px: style.font_px.unwrap_or(self.font_px),
        }
    }

    fn is_unreadable(&self) -> bool {
        self.font_px <= TINY_PX
            || self
                .color
                .is_some_and(|color| color.vanishes_on(&self.background))
    }
}

#[cfg(test)]
mod tests;
