//! Tables as grids: each row gets the same number of cells, so that the place of a value in its row says which column it is in.
//!
//! Tables that only lay a page out, and tables inside the cells of others, become plain blocks.

use ego_tree::NodeId;
use ego_tree::iter::Edge;
use html5ever::{LocalName, QualName, local_name};
use scraper::node::{Element, Node};
use scraper::{ElementRef, Html};

use crate::document;

/// Columns of a table that is made a grid. Browsers take a cell over more than 1,000 columns for one over so many.
const COLUMNS_MAX: usize = 1_000;
/// Cells that are added to a page. A table that needs more is left as it is.
const ADDED_MAX: usize = 20_000;

/// What the tree of a page may take for cells to be added: a tree that outgrows its room is moved, and takes twice as much.
const TREE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A table of a page.
struct Table {
    id: NodeId,
    /// The one whose cell it stands in.
    outer: Option<usize>,
    rows: Vec<NodeId>,
    /// The elements that make it one, but for its own.
    parts: Vec<NodeId>,
    /// It has a caption, or cells that are heads.
    has_heads: bool,
    /// It has cells that hold tables, or headings of the page.
    holds_blocks: bool,
    /// The page says that it is for the layout.
    is_layout: bool,
}

/// Makes the tables of a page grids. In very large pages, rows keep the cells that they have.
pub fn fill(html: &mut Html) {
    let tables = tables(html);
    let is_large = document::weight(html) > TREE_BYTES_MAX;
    let mut n_left = if is_large { 0 } else { ADDED_MAX };
    // For each table, whether what stands in it stands in a grid.
    let mut in_grid = Vec::new();
    for table in &tables {
        // One that stands in a block may be a grid again.
        let is_inside = table
            .outer
            .is_some_and(|outer| in_grid.get(outer) == Some(&true));
        let is_plain = is_inside || table.is_layout || (table.holds_blocks && !table.has_heads);
        in_grid.push(is_inside || !is_plain);
        if is_plain {
            for id in table.parts.iter().chain([&table.id]) {
                rename(html, *id, local_name!("div"));
            }
        } else {
            fill_rows(html, table, &mut n_left);
        }
    }
}

/// Puts captions before their tables, as paragraphs, and takes rows without cells out: Markdown has no place for them.
pub fn prepare_for_markdown(html: &mut Html) {
    let (mut captions, mut rows) = (Vec::new(), Vec::new());
    for element in html.tree.root().descendants().filter_map(ElementRef::wrap) {
        match element.value().name() {
            "caption" => {
                let mut around = element.ancestors().filter_map(ElementRef::wrap);
                let table = around.find(|element| element.value().name() == "table");
                captions.extend(table.map(|table| (element.id(), table.id())));
            }
            "tr" if cells(&element).next().is_none() => rows.push(element.id()),
            _ => {}
        }
    }
    for (caption, table) in captions {
        rename(html, caption, local_name!("p"));
        if let Some(mut table) = html.tree.get_mut(table) {
            let _moved = table.insert_id_before(caption);
        }
    }
    for row in rows {
        if let Some(mut row) = html.tree.get_mut(row) {
            row.detach();
        }
    }
}

fn cells<'a>(row: &ElementRef<'a>) -> impl Iterator<Item = ElementRef<'a>> {
    row.children()
        .filter_map(ElementRef::wrap)
        .filter(|cell| matches!(cell.value().name(), "td" | "th"))
}

/// The tables that are part of the page, outer ones first.
fn tables(html: &Html) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for edge in html.tree.root().traverse() {
        match edge {
            Edge::Open(node) => {
                let Some(element) = ElementRef::wrap(node) else {
                    continue;
                };
                let around = open.last().copied();
                if let Some(table) = around.and_then(|around| tables.get_mut(around)) {
                    table.take(&element);
                }
                if element.value().name() == "table" {
                    open.push(tables.len());
                    tables.push(Table::new(&element, around));
                }
            }
            Edge::Close(node) => {
                if ElementRef::wrap(node).is_some_and(|element| element.value().name() == "table") {
                    open.pop();
                }
            }
        }
    }
    tables
}

impl Table {
    fn new(element: &ElementRef<'_>, outer: Option<usize>) -> Self {
        let role = element.attr("role").unwrap_or_default();
        Self {
            id: element.id(),
            outer,
            rows: Vec::new(),
            parts: Vec::new(),
            has_heads: false,
            holds_blocks: false,
            is_layout: matches!(role, "presentation" | "none"),
        }
    }

    /// Takes note of an element inside, which is not inside a table inside.
    fn take(&mut self, element: &ElementRef<'_>) {
        match element.value().name() {
            "tr" => self.rows.push(element.id()),
            "th" | "caption" | "thead" => self.has_heads = true,
            "td" | "tbody" | "tfoot" => {}
            "table" | "h1" | "h2" | "h3" => {
                self.holds_blocks = true;
                return;
            }
            _ => return,
        }
        self.parts.push(element.id());
    }
}

/// Where cells are added.
enum Place {
    Before(NodeId),
    After(NodeId),
    AtEnd(NodeId),
}

/// A row as it is on the screen.
struct Row {
    id: NodeId,
    is_head: bool,
    added: Vec<(Place, usize)>,
    width: usize,
}

fn fill_rows(html: &mut Html, table: &Table, n_left: &mut usize) {
    let Some(mut rows) = rows(html, table) else {
        return;
    };
    let width = rows.iter().map(|row| row.width).max().unwrap_or_default();
    for row in &mut rows {
        if row.width < width {
            row.added.push((Place::AtEnd(row.id), width - row.width));
        }
    }
    let added = rows.iter().flat_map(|row| &row.added);
    let n_added: usize = added.map(|(_, number)| number).sum();
    let Some(left) = n_left.checked_sub(n_added) else {
        return;
    };
    *n_left = left;
    for row in rows {
        let name = match row.is_head {
            true => local_name!("th"),
            false => local_name!("td"),
        };
        for (place, number) in row.added {
            for _ in 0..number {
                add(html, &place, name.clone());
            }
        }
    }
    drop_spans(html, table);
}

/// The rows of a table that have cells; none when it is wider than any table for readers.
fn rows(html: &Html, table: &Table) -> Option<Vec<Row>> {
    let mut rows = Vec::new();
    // For each column, rows that a cell from above reaches into.
    let mut spans: Vec<usize> = Vec::new();
    let mut group = None;
    for id in &table.rows {
        let element = ElementRef::wrap(html.tree.get(*id)?)?;
        // Cells do not reach out of a group of rows.
        let parent = element.parent().map(|parent| parent.id());
        if group != parent {
            spans.clear();
            group = parent;
        }
        let cells: Vec<_> = cells(&element).collect();
        let row = row(*id, &cells, &mut spans)?;
        if !cells.is_empty() {
            rows.push(row);
        }
    }
    Some(rows)
}

fn row(id: NodeId, cells: &[ElementRef<'_>], spans: &mut Vec<usize>) -> Option<Row> {
    let mut added = Vec::new();
    let mut column = 0;
    for cell in cells {
        let n_covered = cover(spans, &mut column);
        if n_covered > 0 {
            added.push((Place::Before(cell.id()), n_covered));
        }
        let n_columns = span(cell, "colspan").clamp(1, COLUMNS_MAX);
        let n_rows = span(cell, "rowspan");
        if n_columns > 1 {
            added.push((Place::After(cell.id()), n_columns - 1));
        }
        let end = column + n_columns;
        if end > COLUMNS_MAX {
            return None;
        }
        if spans.len() < end {
            spans.resize(end, 0);
        }
        for below in &mut spans[column..end] {
            *below = n_rows.saturating_sub(1);
        }
        column = end;
    }
    let n_covered = cover(spans, &mut column);
    if n_covered > 0 {
        added.push((Place::AtEnd(id), n_covered));
    }
    // What lies beyond cells that end before it.
    for below in spans.iter_mut().skip(column) {
        *below = below.saturating_sub(1);
    }
    Some(Row {
        id,
        is_head: cells.iter().all(|cell| cell.value().name() == "th"),
        added,
        width: column,
    })
}

/// Goes over the columns that cells from above reach into.
fn cover(spans: &mut [usize], column: &mut usize) -> usize {
    let start = *column;
    while let Some(below) = spans.get_mut(*column).filter(|below| **below > 0) {
        *below -= 1;
        *column += 1;
    }
    *column - start
}

/// Rows or columns that a cell reaches over. To the end of the group of rows is written as 0.
fn span(cell: &ElementRef<'_>, name: &str) -> usize {
    match cell.attr(name).map(|value| value.trim().parse()) {
        Some(Ok(0)) if name == "rowspan" => usize::MAX,
        Some(Ok(number)) => number,
        _ => 1,
    }
}

fn add(html: &mut Html, place: &Place, name: LocalName) {
    let (Place::Before(id) | Place::After(id) | Place::AtEnd(id)) = *place;
    let Some(mut node) = html.tree.get_mut(id) else {
        return;
    };
    let Node::Element(beside) = node.value() else {
        return;
    };
    let name = QualName::new(None, beside.name.ns.clone(), name);
    let cell = Node::Element(Element::new(name, Vec::new()));
    let _added = match place {
        Place::Before(_) => node.insert_before(cell),
        Place::After(_) => node.insert_after(cell),
        Place::AtEnd(_) => node.append(cell),
    };
}

/// Each cell is one column wide now.
fn drop_spans(html: &mut Html, table: &Table) {
    for id in &table.parts {
        if let Some(mut node) = html.tree.get_mut(*id)
            && let Node::Element(element) = node.value()
        {
            element.attrs.retain(|(name, _)| {
                !matches!(name.local, local_name!("colspan") | local_name!("rowspan"))
            });
        }
    }
}

fn rename(html: &mut Html, id: NodeId, name: LocalName) {
    if let Some(mut node) = html.tree.get_mut(id)
        && let Node::Element(element) = node.value()
    {
        element.name.local = name;
    }
}

#[cfg(test)]
mod tests {
    use scraper::{Html, Selector};

    use super::{ADDED_MAX, fill};
    use crate::text;

    fn text_of(body: &str) -> String {
        let mut html = Html::parse_document(body);
        fill(&mut html);
        text::of(&html.root_element())
    }

    #[test]
    fn values_stand_in_their_columns() {
        for (body, expected) in [
            (
                "<table><tr><th>a<th>b<th>c<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td>5</table>",
                "a\tb\tc\n1\t2\t3\n\t4\t5",
            ),
            (
                "<table><tr><th colspan=2>a<th>b<tr><td>1<td>2<td>3</table>",
                "a\t\tb\n1\t2\t3",
            ),
            (
                "<table><tr><td>1<td rowspan=0>2<td>3<tr><td>4<td>5<tr><td>6<td>7<tbody><tr><td>8<td>9</table>",
                "1\t2\t3\n4\t\t5\n6\t\t7\n8\t9",
            ),
            // A table in a cell with heads is a part of its text; a layout is no table.
            (
                "<table><tr><th>a<th>b<tr><td>1<td><table><tr><td>2<td>3</table></table>",
                "a\tb\n1\t2 3",
            ),
            (
                "<table><tr><td>a<td><table><tr><td>1<td><td>2</table></table>",
                "a\n\n1\t\t2",
            ),
            (
                "<table><tr><td>menu<td><h1>b</h1><p>c</table>",
                "menu\n\nb\n\nc",
            ),
        ] {
            assert_eq!(text_of(body), expected, "{body}");
        }
    }

    #[test]
    fn what_is_added_has_a_bound() {
        let cell = Selector::parse("td").expect("it is valid");
        for body in [
            format!(
                "<table><tr><td colspan=1000>a{}</table>",
                "<tr><td>b".repeat(1_000)
            ),
            "<table><tr><td colspan=1000>a<td>b</table>".to_owned(),
            "<table><tr><td colspan=1000>a</table>".repeat(100),
            "<table><tr><td rowspan=99999999999>a<td>b</table>".to_owned(),
        ] {
            let mut html = Html::parse_document(&body);
            let n_before = html.select(&cell).count();
            fill(&mut html);
            let n_cells = html.select(&cell).count();
            assert!(
                (n_before..=n_before + ADDED_MAX).contains(&n_cells),
                "{n_cells}"
            );
        }
    }
}
