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
                Node::Element(element) if is_hidden(element) => {
                    found.push(node.id());
                    hidden = Some(node.id());
                }
                Node::Element(element) => {
                    looks.push(looks.last().copied().unwrap_or_default().inside(element));
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

fn is_hidden(element: &Element) -> bool {
    let is_hidden = element
        .attr("hidden")
        .is_some_and(|value| !value.eq_ignore_ascii_case("until-found"));
    is_hidden
        || element
            .attr("aria-hidden")
            .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
        || element
            .classes()
            .any(|class| OFFSCREEN_CLASSES.contains(&class))
        || (element.name() == "input"
            && element
                .attr("type")
                .is_some_and(|kind| kind.eq_ignore_ascii_case("hidden")))
        || (element.name() == "dialog" && element.attr("open").is_none())
        || Style::of(element).is_hidden
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
    fn inside(self, element: &Element) -> Self {
        let style = Style::of(element);
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
