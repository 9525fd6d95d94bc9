//! The full screen, drawn: a pure function of what is shown.
//!
//! At the left the transcript, at the right the tools where there is room for them, below them the counters and what is typed. On a small
//! terminal the tools go first, then the counters.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use zeph_agent::tool_host::CallEndKind;
use zeph_core::text::counted;

use super::model::{FullModel, ToolRow};
use crate::agent::wrap::columns;
use crate::run::render::{duration, escape};

/// The narrowest screen with a pane of tools.
const TOOLS_COLUMNS_MIN: u16 = 72;

/// The columns of the pane of tools.
const TOOLS_COLUMNS: u16 = 32;

/// Rows of what is typed.
const INPUT_ROWS_MAX: u16 = 6;

/// Lines of the output of a call in the pane of tools.
const OUTPUT_LINES: usize = 8;

/// The columns of the transcript on a screen of so many.
pub(super) fn transcript_width(columns: u16) -> usize {
    match columns >= TOOLS_COLUMNS_MIN {
        true => usize::from(columns - TOOLS_COLUMNS),
        false => usize::from(columns),
    }
}

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, model: &FullModel) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let input = input_rows(model, usize::from(area.width));
    let n_input = u16::try_from(input.rows.len()).unwrap_or(INPUT_ROWS_MAX);
    let n_input = n_input.min(INPUT_ROWS_MAX).min(area.height);
    let n_status = u16::from(area.height > n_input + 1);
    let [main, status, typed] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(n_status),
        Constraint::Length(n_input),
    ])
    .areas(area);
    let n_tools = area.width - u16::try_from(transcript_width(area.width)).unwrap_or(area.width);
    let [said, tools] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(n_tools)]).areas(main);
    draw_transcript(frame, model, said);
    draw_tools(frame, model, tools);
    frame.render_widget(Paragraph::new(status_line(model)), status);
    draw_input(frame, &input, typed);
}

fn draw_transcript(frame: &mut Frame<'_>, model: &FullModel, area: Rect) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    if width == 0 || height == 0 {
        return;
    }
    // From the end, as far as is shown.
    let mut rows: Vec<Line<'_>> = Vec::new();
    for line in model.transcript.lines.iter().rev() {
        rows.extend(wrapped(line, width).into_iter().rev());
        if rows.len() >= height + model.scroll {
            break;
        }
    }
    let scroll = model.scroll.min(rows.len().saturating_sub(height));
    let shown = rows.into_iter().skip(scroll).take(height);
    let mut shown: Vec<Line<'_>> = shown.collect();
    shown.reverse();
    frame.render_widget(Paragraph::new(shown), area);
}

fn draw_tools(frame: &mut Frame<'_>, model: &FullModel, area: Rect) {
    let block = Block::new()
        .borders(Borders::LEFT)
        .title(format!(" {}", counted(model.status.calls, "call", "calls")))
        .border_style(Style::new().dim());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    // The title takes no row of its own where only the left side has a border.
    let height = usize::from(inner.height.saturating_sub(1));
    let width = usize::from(inner.width);
    if height == 0 || width == 0 {
        return;
    }
    let mut rows: Vec<Line<'_>> = Vec::new();
    for row in model.tools.iter().rev() {
        rows.extend(tool_lines(row, width).into_iter().rev());
        if rows.len() >= height {
            break;
        }
    }
    rows.truncate(height);
    rows.reverse();
    let below = Rect {
        y: inner.y + 1,
        height: inner.height - 1,
        ..inner
    };
    frame.render_widget(Paragraph::new(rows), below);
}

/// A call: its title, how it ended, and the end of its output while it runs.
fn tool_lines(row: &ToolRow, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(cut(&format!(" {}", row.title), width))];
    let (text, style) = match &row.end {
        None => ("running".to_owned(), Style::new().yellow()),
        Some((CallEndKind::Done, took)) => {
            (format!("ok · {}", duration(*took)), Style::new().dim())
        }
        Some((kind, took)) => {
            let how = match kind {
                CallEndKind::NeedsApproval => "needs approval",
                CallEndKind::Denied => "denied",
                CallEndKind::Cancelled => "cancelled",
                CallEndKind::Malformed => "invalid call",
                CallEndKind::Failed | CallEndKind::Done => "failed",
            };
            (format!("{how} · {}", duration(*took)), Style::new().red())
        }
    };
    if row.end.is_none() {
        let n_hidden = row.output.len().saturating_sub(OUTPUT_LINES);
        let output = row.output.iter().skip(n_hidden);
        lines.extend(output.map(|line| Line::from(cut(&format!(" │ {line}"), width)).dim()));
    }
    lines.push(Line::styled(cut(&format!("   {text}"), width), style));
    lines
}

fn status_line(model: &FullModel) -> Line<'static> {
    let mut text = escape(&model.status.to_string());
    if model.is_busy {
        text.push_str(&format!(" · working {} s", model.busy_seconds));
    }
    if model.scroll > 0 {
        text.push_str(" · scrolled, Esc goes to the end");
    }
    if !model.hint.is_empty() {
        text = escape(&model.hint);
    }
    Line::styled(text, Style::new().add_modifier(Modifier::REVERSED))
}

/// What is typed, in rows, and where its cursor is.
struct InputRows {
    rows: Vec<String>,
    cursor: (usize, usize),
}

/// The label and what is typed behind it, as rows of so many columns.
fn input_rows(model: &FullModel, width: usize) -> InputRows {
    let label = match &model.question {
        Some(label) => format!("{label} "),
        None => "> ".to_owned(),
    };
    let (before, after) = model.input.text.split_at(model.input.cursor);
    let mut rows = vec![String::new()];
    let mut push = |text: &str| {
        for character in text.chars() {
            let mut bytes = [0; 4];
            let shown = character.encode_utf8(&mut bytes);
            let last = rows.last().map_or(0, |row| columns(row));
            if character == '\n' || last + columns(shown) > width.max(1) {
                rows.push(String::new());
            }
            if let (Some(row), true) = (rows.last_mut(), character != '\n') {
                row.push_str(shown);
            }
        }
        (rows.len() - 1, rows.last().map_or(0, |row| columns(row)))
    };
    push(&label);
    let cursor = push(&escape(before));
    push(&escape(after));
    InputRows { rows, cursor }
}

fn draw_input(frame: &mut Frame<'_>, input: &InputRows, area: Rect) {
    let height = usize::from(area.height);
    // The row of the cursor is always among those shown.
    let first = (input.cursor.0 + 1).saturating_sub(height);
    let rows = input.rows.iter().skip(first).take(height);
    let rows: Vec<Line<'_>> = rows.map(|row| Line::from(row.as_str())).collect();
    frame.render_widget(Paragraph::new(rows), area);
    let (Ok(x), Ok(y)) = (
        u16::try_from(input.cursor.1),
        u16::try_from(input.cursor.0 - first),
    ) else {
        return;
    };
    if height > 0 {
        let x = area.x + x.min(area.width.saturating_sub(1));
        frame.set_cursor_position(Position::new(x, area.y + y));
    }
}

/// A line in rows of so many columns, broken between words where there are some.
fn wrapped<'a>(line: &'a Line<'_>, width: usize) -> Vec<Line<'a>> {
    if line.width() <= width {
        let spans = line.spans.iter();
        let spans = spans.map(|span| Span::styled(span.content.as_ref(), span.style));
        return vec![Line::from_iter(spans)];
    }
    let mut rows = Vec::new();
    let mut row: Vec<(char, Style)> = Vec::new();
    let mut n_columns = 0;
    for span in &line.spans {
        for character in span.content.chars() {
            let n_wide = columns(character.encode_utf8(&mut [0; 4]));
            if n_columns + n_wide > width && character == ' ' {
                rows.push(styled(&row));
                (row, n_columns) = (Vec::new(), 0);
                continue;
            }
            if n_columns + n_wide > width {
                let blank = row.iter().rposition(|(letter, _)| *letter == ' ');
                let rest = match blank.filter(|at| *at > 0) {
                    Some(at) => row.split_off(at + 1),
                    None => Vec::new(),
                };
                rows.push(styled(&row));
                n_columns = styled(&rest).width();
                row = rest;
            }
            row.push((character, span.style));
            n_columns += n_wide;
        }
    }
    rows.push(styled(&row));
    rows
}

fn styled(letters: &[(char, Style)]) -> Line<'static> {
    let runs = letters.chunk_by(|one, other| one.1 == other.1);
    let spans = runs.map(|run| {
        let text: String = run.iter().map(|(letter, _)| letter).collect();
        Span::styled(text, run.first().map_or_else(Style::new, |first| first.1))
    });
    Line::from_iter(spans)
}

/// The beginning of a text, as far as it fits.
fn cut(text: &str, width: usize) -> String {
    let mut shown = String::new();
    let mut n_columns = 0;
    for character in text.chars() {
        n_columns += columns(character.encode_utf8(&mut [0; 4]));
        if n_columns > width {
            break;
        }
        shown.push(character);
    }
    shown
}

#[cfg(test)]
mod tests;
