//! The text of an element as it would be read: lines where blocks begin and end, white space as it is shown, no invisible letters.
//!
//! A row of a table is a line, with one tab for each cell that ended, so that what stands in a column is found by counting.

use ego_tree::NodeRef;
use ego_tree::iter::Edge;
use scraper::node::Element;
use scraper::{ElementRef, Node};

/// Elements that hold no text for readers.
const SILENT: [&str; 10] = [
    "script", "style", "template", "noscript", "head", "iframe", "object", "svg", "canvas",
    "datalist",
];

/// Bytes of a cell that is written in one line.
const CELL_BYTES: usize = 300;

/// Lists inside each other that are still told apart: more would be room that a page chooses.
const DEPTH_MAX: usize = 8;

/// The text of `element`. What is silent in a page (`script`, `title`) speaks when it is asked for itself.
pub fn of(element: &ElementRef<'_>) -> String {
    let mut page = Lines::default();
    let mut silent = None;
    for edge in element.traverse() {
        match edge {
            Edge::Open(node) if silent.is_none() => match node.value() {
                Node::Element(inner)
                    if node.id() != element.id() && SILENT.contains(&inner.name()) =>
                {
                    silent = Some(node.id());
                }
                Node::Element(inner) if is_cell(inner.name()) => page.open_cell(is_short(node)),
                Node::Element(inner) => page.open(inner),
                Node::Text(text) => page.push(text),
                _ => {}
            },
            Edge::Close(node) if silent == Some(node.id()) => silent = None,
            Edge::Close(node) if silent.is_none() => {
                if let Node::Element(inner) = node.value() {
                    page.close(inner.name());
                }
            }
            _ => {}
        }
    }
    clean(page.text.trim_end())
}

fn is_cell(name: &str) -> bool {
    matches!(name, "td" | "th")
}

/// Whether a cell holds so little that its lines can be one.
fn is_short(cell: NodeRef<'_, Node>) -> bool {
    let mut n_bytes = 0;
    cell.descendants().all(|node| match node.value() {
        Node::Text(text) => {
            n_bytes += text.len();
            n_bytes <= CELL_BYTES
        }
        Node::Element(element) => !matches!(element.name(), "pre" | "textarea" | "table"),
        _ => true,
    })
}

/// What stands between a piece of text and the one before it.
#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

#[derive(Default)]
struct Lines {
    text: String,
    gap: Gap,
    /// Elements around that keep white space.
    n_kept: usize,
    /// The open lists, from outside in: the number of the next item, if they are numbered.
    lists: Vec<Option<i32>>,
    /// A mark of a list item that waits for its text.
    mark: Option<String>,
    /// Cells of the row that ended since the last text.
    n_tabs: usize,
    /// Where the text of the row begins, and that of the cell, if something of them is open.
    row: usize,
    cell: Option<usize>,
    /// The cell is written in one line.
    is_short: bool,
}

impl Lines {
    fn open(&mut self, element: &Element) {
        let name = element.name();
        self.widen(self.gap_of(name));
        match name {
            "tr" => self.begin_row(),
            "pre" | "textarea" => self.n_kept += 1,
            "ul" => self.lists.push(None),
            "ol" => self.lists.push(first_number(element)),
            "li" => self.mark = Some(self.mark_of(element)),
            "br" => self.widen(Gap::Line),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "pre" | "textarea" => self.n_kept = self.n_kept.saturating_sub(1),
            "ul" | "ol" => drop(self.lists.pop()),
            "li" => self.mark = None,
            "td" | "th" => return self.close_cell(),
            "tr" => self.begin_row(),
            _ => {}
        }
        self.widen(self.gap_of(name));
    }

    /// What stands before and after an element: a list in an item of another one is a part of it.
    fn gap_of(&self, name: &str) -> Gap {
        match name {
            "ul" | "ol" if !self.lists.is_empty() => Gap::Line,
            _ => gap_of(name),
        }
    }

    /// What stands before the text of an item: its number, in a list that is numbered.
    fn mark_of(&mut self, item: &Element) -> String {
        let Some(Some(number)) = self.lists.last_mut() else {
            return "- ".to_owned();
        };
        if let Some(own) = item.attr("value").and_then(|value| value.parse().ok()) {
            *number = own;
        }
        let mark = format!("{number}. ");
        *number = number.saturating_add(1);
        mark
    }

    fn begin_row(&mut self) {
        self.n_tabs = 0;
        self.row = self.text.len();
        self.cell = None;
        self.is_short = false;
    }

    fn open_cell(&mut self, is_short: bool) {
        self.cell = Some(self.text.len());
        self.is_short = is_short;
    }

    fn close_cell(&mut self) {
        self.n_tabs += 1;
        self.cell = None;
        self.is_short = false;
        // What is between two cells is a tab, but before the first text of a row it is what is before the row.
        if self.text.len() > self.row {
            self.gap = Gap::None;
        }
    }

    fn widen(&mut self, gap: Gap) {
        let gap = match self.cell {
            // Blocks at the beginning of a cell do not part it from the one before.
            Some(start) if start == self.text.len() => Gap::None,
            Some(_) if self.is_short => gap.min(Gap::Space),
            _ => gap,
        };
        self.gap = self.gap.max(gap);
    }

    fn push(&mut self, text: &str) {
        if self.n_kept > 0 && !text.is_empty() {
            self.begin();
            return self.text.push_str(text);
        }
        if text.starts_with(|letter: char| letter.is_ascii_whitespace()) {
            self.widen(Gap::Space);
        }
        for word in text.split_ascii_whitespace() {
            self.begin();
            self.text.push_str(word);
            self.gap = Gap::Space;
        }
        if !text.ends_with(|letter: char| letter.is_ascii_whitespace()) && self.gap == Gap::Space {
            self.gap = Gap::None;
        }
    }

    /// Writes what stands before the next piece.
    fn begin(&mut self) {
        let gap = match self.gap {
            Gap::None => "",
            Gap::Space if self.n_tabs > 0 => "",
            Gap::Space => " ",
            Gap::Line => "\n",
            Gap::Paragraph => "\n\n",
        };
        let gap = if self.text.is_empty() { "" } else { gap };
        self.text.push_str(gap);
        for _ in 0..std::mem::take(&mut self.n_tabs) {
            self.text.push('\t');
        }
        self.gap = Gap::None;
        if let Some(mark) = self.mark.take() {
            if self.text.is_empty() || self.text.ends_with('\n') {
                let depth = self.lists.len().saturating_sub(1).min(DEPTH_MAX);
                self.text.extend(std::iter::repeat_n("  ", depth));
            }
            self.text.push_str(&mark);
        }
    }
}

/// The number of the first item of a numbered list; none for one that counts down, whose items would have to be counted first.
fn first_number(list: &Element) -> Option<i32> {
    if list.attr("reversed").is_some() {
        return None;
    }
    Some(
        list.attr("start")
            .and_then(|start| start.parse().ok())
            .unwrap_or(1),
    )
}

/// What stands before and after an element.
fn gap_of(name: &str) -> Gap {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "pre" | "blockquote" | "ul" | "ol"
        | "dl" | "table" | "figure" | "section" | "article" | "details" | "hr" => Gap::Paragraph,
        "div" | "li" | "dt" | "dd" | "tr" | "caption" | "figcaption" | "summary" | "address"
        | "header" | "footer" | "main" | "nav" | "aside" | "form" | "fieldset" | "legend"
        | "option" | "body" | "thead" | "tbody" | "tfoot" | "textarea" | "dialog" | "center"
        | "hgroup" | "search" => Gap::Line,
        _ => Gap::None,
    }
}

/// `text` without letters that are not seen: what has no width, turns the direction, or carries hidden data.
pub fn clean(text: &str) -> String {
    if text
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r'))
    {
        return text.to_owned();
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_kept = match letter {
            // They join letters of many scripts and of emoji; between plain ones they only hide.
            '\u{200c}' | '\u{200d}' => {
                joins(&cleaned)
                    && letters
                        .peek()
                        .is_some_and(|next| !next.is_ascii() && !is_unseen(*next))
            }
            // One chooses the form of the sign before it; more are data.
            '\u{fe00}'..='\u{fe0f}' => {
                is_sign(&cleaned)
                    || cleaned.ends_with(|before: char| {
                        before.is_ascii_digit() || matches!(before, '#' | '*')
                    })
            }
            letter => !is_unseen(letter),
        };
        if is_kept {
            cleaned.push(letter);
        }
    }
    cleaned
}

/// Whether what stands there can be joined to the next letter.
fn joins(before: &str) -> bool {
    is_sign(before.strip_suffix('\u{fe0f}').unwrap_or(before))
}

/// Whether the last letter is one that can have another form.
fn is_sign(before: &str) -> bool {
    let last = before.chars().next_back();
    last.is_some_and(|letter| {
        !letter.is_ascii() && !matches!(letter, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
    })
}

fn is_unseen(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || (letter.is_control() && !matches!(letter, '\n' | '\t' | '\r'))
}

#[cfg(test)]
mod tests {
    use scraper::{Html, Selector};

    use super::*;

    fn text_of(body: &str) -> String {
        of(&Html::parse_document(body).root_element())
    }

    #[test]
    fn text_is_laid_out_as_it_is_read() {
        for (body, expected) in [
            ("a <b>b</b>c<i> d</i>", "a bc d"),
            ("<p>one\n  two</p><p>three", "one two\n\nthree"),
            ("<div>one</div><div>two</div>three", "one\ntwo\nthree"),
            ("one<br>two", "one\ntwo"),
            ("<ul><li>one<li><p>two</p></ul>", "- one\n\n- two"),
            ("<ol><li>one<li>two</ol>", "1. one\n2. two"),
            (
                "<ol start=3><li>c<li value=7>g<li>h</ol>",
                "3. c\n7. g\n8. h",
            ),
            (
                "<ol start=99999999999><li>a</ol><ol reversed><li>b</ol>",
                "1. a\n\n- b",
            ),
            (
                "<ul><li>x<ol><li>y<ul><li>z</ul></ol><li>w</ul>v",
                "- x\n  1. y\n    - z\n- w\n\nv",
            ),
            (
                "<table><tr><td>a<td><ol><li>b<li>c</ol></table>",
                "a\t1. b 2. c",
            ),
            ("<center>a</center><hgroup>b</hgroup>c", "a\nb\nc"),
            ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a\tb\n1\t2"),
            (
                "<table><tr><th>a<th>b<th>c<tr><td><td><p></p><td>1<tr><td>2<td><td> <tr><td>3<td><td>4</table>",
                "a\tb\tc\n\t\t1\n2\n3\t\t4",
            ),
            (
                "x<table><tr><td> <p>a</p> <p>b</p> <td> <ul><li>c<li>d</ul> <td>e</table>y",
                "x\n\na b\t- c - d\te\n\ny",
            ),
            (
                "<table><tr><td><td>a</table><table><tr><td>b<td><pre>c\n d</pre><td>e</table>",
                "\ta\n\nb\tc\n d\te",
            ),
            (
                "<dl><dt>--a<dd>does a<dt>--b<dd>does b</dl>",
                "--a\ndoes a\n--b\ndoes b",
            ),
            ("<pre>fn a() {\n    b\n}</pre>", "fn a() {\n    b\n}"),
            ("a<script>no</script>b", "ab"),
            ("<title>no</title>yes", "yes"),
            ("x&nbsp;y &lt;b&gt;", "x\u{a0}y <b>"),
        ] {
            assert_eq!(text_of(body), expected, "{body}");
        }
    }

    #[test]
    fn what_is_asked_for_speaks() {
        let html = Html::parse_document("<title>The title</title><script>{\"a\":1}</script>");
        for (selector, expected) in [("title", "The title"), ("script", "{\"a\":1}")] {
            let selector = Selector::parse(selector).expect("it is valid");
            assert_eq!(
                html.select(&selector)
                    .map(|element| of(&element))
                    .collect::<Vec<_>>(),
                [expected]
            );
        }
    }

    #[test]
    fn letters_that_are_not_seen_go() {
        for (text, expected) in [
            ("pl\u{200b}ain", "plain"),
            ("a\u{200d}b\u{200c}c", "abc"),
            ("so\u{ad}ft\u{feff}\u{2060}", "soft"),
            ("x\u{202e}y\u{2066}z", "xyz"),
            ("tag\u{e0041}\u{e0042}\u{e007f}", "tag"),
            ("a\u{fe00}\u{fe01}\u{e0101}", "a"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("👨\u{200d}👩\u{200d}👧", "👨\u{200d}👩\u{200d}👧"),
            ("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥"),
            ("❤\u{fe0f}\u{fe0e}\u{fe0f}", "❤\u{fe0f}"),
            ("1\u{fe0f}\u{20e3}", "1\u{fe0f}\u{20e3}"),
            ("bell\u{7}\u{1b}[1m", "bell[1m"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }
}
