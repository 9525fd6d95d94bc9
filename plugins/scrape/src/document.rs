//! A page as a tree, built within bounds: a page that nests without end is refused instead of worked on.

use ego_tree::Tree;
use ego_tree::iter::Edge;
use html5ever::driver::{self, ParseOpts};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use scraper::{Html, HtmlTreeSink, Node};
use zeph_plugin::ToolError;

/// Elements inside each other. Browsers stop at 512 as well, so pages do not go beyond; what walks the tree may recurse this deep.
pub const DEPTH_MAX: usize = 512;
/// Bytes that the tree of one page takes. With the default limits that is ten bytes for each byte of the longest page; what is denser
/// than that is not made for readers.
const TREE_BYTES_MAX: usize = 20 * 1024 * 1024;
/// What an element, a text or a comment takes in the component, where pointers have 32 bits.
const NODE_BYTES: usize = 96;
/// What an attribute takes there.
const ATTRIBUTE_BYTES: usize = 48;
/// Bytes of a name or value that lie in the attribute itself.
const INLINE_BYTES: usize = 8;
/// What a longer name or value takes besides its bytes.
const HEAP_BYTES: usize = 24;
/// Bytes handed to the parser between two looks at the tree.
const PIECE_BYTES: usize = 4096;

/// Builds the tree of a page. Its texts are parts of the page, which is given up, and not copies.
///
/// Errors: `permanent_failure` when the page nests too deep, or has more elements than a tree may hold.
pub fn parse(text: impl Into<StrTendril>) -> Result<Html, ToolError> {
    let mut rest = text.into();
    let mut growth = Growth::new(n_nodes(&rest));
    let mut html = Html::new_document();
    html.tree = Tree::with_capacity(Node::Document, growth.n_reserved);
    let sink = HtmlTreeSink::new(html);
    let mut parser = driver::parse_document(sink, ParseOpts::default());
    while !rest.is_empty() {
        let n_bytes = rest
            .floor_char_boundary(PIECE_BYTES)
            .max(1)
            .min(rest.len32() as usize);
        let n_bytes = u32::try_from(n_bytes).unwrap_or(u32::MAX);
        parser.process(rest.subtendril(0, n_bytes));
        growth.check(&mut parser.tokenizer.sink.sink.0.borrow_mut())?;
        rest.pop_front(n_bytes);
    }
    let html = parser.finish();
    match depth(&html) > DEPTH_MAX {
        true => Err(too_deep()),
        false => Ok(html),
    }
}

/// What the elements and texts that are part of a page take in memory, in bytes; not those that were taken out of it.
pub fn weight(html: &Html) -> usize {
    let nodes = html.tree.root().descendants();
    nodes
        .map(|node| NODE_BYTES + attributes_weight(node.value()))
        .sum()
}

/// Nodes of the tree of a page, roughly: with room for them at once, a tree does not lie in memory twice while it grows.
fn n_nodes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let n_nodes: usize = memchr::memchr_iter(b'<', bytes)
        .map(|at| {
            // A tag that ends an element is no node; what stands before a tag is a text, unless another tag does.
            let is_end = bytes.get(at + 1) == Some(&b'/');
            let is_after_text = at > 0 && bytes[at - 1] != b'>';
            usize::from(!is_end) + usize::from(is_after_text)
        })
        .sum();
    // Besides, the parser makes elements that pages leave out, such as the bodies of tables.
    // One piece may go beyond what a tree holds, before that is looked at.
    (n_nodes + n_nodes / 16 + 16).min(TREE_BYTES_MAX / NODE_BYTES + PIECE_BYTES)
}

/// The growth of a tree, watched so that a page without end is not built to its end.
struct Growth {
    /// Nodes there is room for from the start.
    n_reserved: usize,
    n_seen: usize,
    attribute_bytes: usize,
}

impl Growth {
    fn new(n_reserved: usize) -> Self {
        Self {
            n_reserved,
            n_seen: 0,
            attribute_bytes: 0,
        }
    }

    /// Looks at what the last piece added.
    fn check(&mut self, html: &mut Html) -> Result<(), ToolError> {
        let n_nodes = html.tree.nodes().len();
        let added = html.tree.values_mut().rev().take(n_nodes - self.n_seen);
        for node in added {
            if let Node::Element(element) = node {
                // The parser leaves room for four.
                element.attrs.shrink_to_fit();
            }
            self.attribute_bytes += attributes_weight(node);
        }
        self.n_seen = n_nodes;
        // A tree that outgrew its room was moved, and its old room is not given back.
        let n_moved = if n_nodes > self.n_reserved {
            n_nodes
        } else {
            0
        };
        if (n_nodes + n_moved) * NODE_BYTES + self.attribute_bytes > TREE_BYTES_MAX {
            return Err(too_many());
        }
        let last = html.tree.nodes().next_back();
        let deep = last.map_or(0, |last| last.ancestors().take(DEPTH_MAX + 1).count());
        match deep > DEPTH_MAX {
            true => Err(too_deep()),
            false => Ok(()),
        }
    }
}

/// What the attributes of a node take. Names of more than a few letters are kept once for each kind, which counts each time here.
fn attributes_weight(node: &Node) -> usize {
    let heap = |text: &str| match text.len() {
        ..=INLINE_BYTES => 0,
        len => len + HEAP_BYTES,
    };
    let attributes = node.as_element().map(|element| element.attrs());
    attributes
        .into_iter()
        .flatten()
        .map(|(name, value)| ATTRIBUTE_BYTES + heap(name) + heap(value))
        .sum()
}

fn depth(html: &Html) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for edge in html.tree.root().traverse() {
        match edge {
            Edge::Open(_) => depth += 1,
            Edge::Close(_) => depth -= 1,
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn too_many() -> ToolError {
    ToolError::permanent(format!(
        "the page has more elements and attributes than fit into {} MiB, which no page for readers has",
        TREE_BYTES_MAX / 1024 / 1024
    ))
}

fn too_deep() -> ToolError {
    ToolError::permanent(format!(
        "the page nests more than {DEPTH_MAX} elements inside each other, which no page for readers does"
    ))
}

#[cfg(test)]
mod tests {
    use zeph_plugin::Category;

    use super::{TREE_BYTES_MAX, n_nodes, parse, weight};

    #[test]
    fn deep_nesting_is_refused() {
        for page in [
            "<div>".repeat(100_000),
            "<b>".repeat(100_000),
            format!("{}{}", "<span>".repeat(2_000), "</span>".repeat(2_000)),
            "<table><tr><td>".repeat(50_000),
            "<ul><li>".repeat(50_000),
            format!("{}<p>end", "<div><p>x</p>".repeat(20_000)),
        ] {
            let error = parse(page).expect_err("deeper than any page");
            assert_eq!(error.category, Category::PermanentFailure);
            assert!(error.message.contains("512"), "{}", error.message);
        }
    }

    #[test]
    fn long_pages_are_not_deep() {
        for page in [
            "<p>word ".repeat(50_000),
            "<li>word".repeat(50_000),
            "word<br>".repeat(50_000),
            "<tr><td>x".repeat(50_000),
            "é".repeat(100_000),
        ] {
            assert!(parse(page).is_ok());
        }
    }

    #[test]
    fn a_page_of_more_than_a_tree_may_hold_is_refused() {
        for (piece, n_bytes) in [
            ("<br>", 1_200_000),
            ("<p a b c d e f g h>", 1_200_000),
            // The parser adds two elements that are not written, and outgrows the room that was made.
            ("<table><td></table>", 1_000_000),
        ] {
            let error = parse(piece.repeat(n_bytes / piece.len())).expect_err(piece);
            assert_eq!(error.category, Category::PermanentFailure);
            assert!(error.message.contains("20 MiB"), "{}", error.message);
        }
    }

    #[test]
    fn room_is_made_for_the_nodes_of_a_page() {
        let item = "<li class=a><a href=\"/b\">text</a> and <em>more</em></li>\n<!-- c -->";
        for (page, expected) in [
            (format!("<ul>{}</ul>", item.repeat(1_000)), 8_000),
            ("<p>word ".repeat(1_000), 2_000),
            ("word<br>".repeat(1_000), 2_000),
            ("words without tags ".repeat(1_000), 1),
        ] {
            let room = n_nodes(&page);
            let n_nodes = parse(page).expect("it is within bounds").tree.nodes().len();
            assert!((expected..expected + 10).contains(&n_nodes), "{n_nodes}");
            assert!(
                room >= n_nodes && room < n_nodes * 5 / 4 + 32,
                "{room} {n_nodes}"
            );
        }
    }

    #[test]
    fn what_was_taken_out_weighs_nothing() {
        let mut html = parse("<p class=a>text</p>".repeat(1_000)).expect("it is within bounds");
        let before = weight(&html);
        assert!((200_000..TREE_BYTES_MAX).contains(&before), "{before}");
        let ids: Vec<_> = html.tree.nodes().map(|node| node.id()).collect();
        for id in ids.into_iter().skip(1) {
            html.tree.get_mut(id).expect("it is there").detach();
        }
        assert_eq!(weight(&html), super::NODE_BYTES);
    }
}
