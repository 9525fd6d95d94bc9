//! A page as a tree, built within bounds: a page that nests without end is refused instead of worked on.

use ego_tree::Tree;
use ego_tree::iter::Edge;
use html5ever::driver::{self, ParseOpts};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use scraper::{Html, HtmlTreeSink, Node};
use zeph_plugin::ToolError;

/// Elements inside each other. Browsers stop at 512 as well, so pages do not go beyond; what walks the tree may recurse this deep.
pub const DEPTH_MAX: usize = 512;
/// Elements, texts and comments of one page: more than a body of plain tags at the default limit comes to.
const NODES_MAX: usize = 1_000_000;
/// Bytes of a page for each node that room is made for.
const BYTES_PER_NODE_MIN: usize = 12;
/// Bytes handed to the parser between two looks at the tree.
const PIECE_BYTES: usize = 4096;

/// Builds the tree of a page. Its texts are parts of the page, which is given up, and not copies.
///
/// Errors: `permanent_failure` when the page nests too deep or has too many elements.
pub fn parse(text: impl Into<StrTendril>) -> Result<Html, ToolError> {
    let mut rest = text.into();
    let mut html = Html::new_document();
    html.tree = Tree::with_capacity(Node::Document, n_nodes(&rest));
    let sink = HtmlTreeSink::new(html);
    let mut parser = driver::parse_document(sink, ParseOpts::default());
    while !rest.is_empty() {
        let n_bytes = rest
            .floor_char_boundary(PIECE_BYTES)
            .max(1)
            .min(rest.len32() as usize);
        let n_bytes = u32::try_from(n_bytes).unwrap_or(u32::MAX);
        parser.process(rest.subtendril(0, n_bytes));
        check_growth(&parser.tokenizer.sink.sink.0.borrow())?;
        rest.pop_front(n_bytes);
    }
    let html = parser.finish();
    match depth(&html) > DEPTH_MAX {
        true => Err(too_deep()),
        false => Ok(html),
    }
}

/// Nodes of the tree of a page, roughly: with room for them at once, a tree does not lie in memory twice while it grows.
fn n_nodes(text: &str) -> usize {
    // Not more than pages for readers have: what has more tags grows the usual way, and may be refused before.
    let n_tags = memchr::memchr_iter(b'<', text.as_bytes()).count();
    n_tags.min(text.len() / BYTES_PER_NODE_MIN) + 16
}

/// Looks at what the last piece added, so that a page without end is not built to its end.
fn check_growth(html: &Html) -> Result<(), ToolError> {
    let mut nodes = html.tree.nodes();
    if nodes.len() > NODES_MAX {
        return Err(ToolError::permanent(
            "the page has more than 1,000,000 elements and texts, which no page for readers has",
        ));
    }
    let deep = nodes
        .next_back()
        .map_or(0, |last| last.ancestors().take(DEPTH_MAX + 1).count());
    if deep > DEPTH_MAX {
        Err(too_deep())
    } else {
        Ok(())
    }
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

fn too_deep() -> ToolError {
    ToolError::permanent(format!(
        "the page nests more than {DEPTH_MAX} elements inside each other, which no page for readers does"
    ))
}

#[cfg(test)]
mod tests {
    use zeph_plugin::Category;

    use super::parse;

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
}
