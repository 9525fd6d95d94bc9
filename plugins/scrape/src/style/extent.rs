//! Boxes that are moved away, or so small that nothing of them is seen.

use super::declarations::Part;
use super::{assign, flag};

/// What inline declarations say of where a box is, and how much of it is seen.
#[derive(Default)]
pub(super) struct Extent {
    is_positioned: bool,
    /// At the top, right, bottom and left.
    is_moved: [bool; 4],
    is_indented: bool,
    has_margin: [bool; 4],
    /// Width, height, and the most of both.
    is_empty: [bool; 4],
    /// Across and down.
    cuts: [bool; 2],
    is_clipped: bool,
    is_clipped_to_path: bool,
    is_transformed: bool,
    is_translated: bool,
    is_scaled: bool,
}

/// Pixels that nobody moves a box by, but to hide it: slides lie beside each other for some screens.
const FAR_PX: f32 = 5000.0;

const SIDES: [&str; 4] = ["top", "right", "bottom", "left"];

impl Extent {
    pub(super) fn read(&mut self, name: &str, value: &[Part]) {
        match name {
            "position" => assign(&mut self.is_positioned, value, |value| {
                flag(
                    value,
                    &["absolute", "fixed"],
                    &["static", "relative", "sticky"],
                )
            }),
            "top" | "right" | "bottom" | "left" => {
                if let Some(side) = SIDES.iter().position(|side| *side == name) {
                    assign(&mut self.is_moved[side], value, |value| {
                        is_beyond(value, -500.0)
                    });
                }
            }
            "inset" => assign(&mut self.is_moved, value, |value| sides(value, -500.0)),
            "text-indent" => assign(&mut self.is_indented, value, |value| {
                is_beyond(value, -900.0)
            }),
            "margin-top" => assign(&mut self.has_margin[0], value, |value| {
                is_beyond(value, -900.0)
            }),
            "margin-left" => assign(&mut self.has_margin[3], value, |value| {
                is_beyond(value, -900.0)
            }),
            "margin" => assign(&mut self.has_margin, value, |value| sides(value, -900.0)),
            "width" => assign(&mut self.is_empty[0], value, is_nothing),
            "height" => assign(&mut self.is_empty[1], value, is_nothing),
            "max-width" => assign(&mut self.is_empty[2], value, is_nothing),
            "max-height" => assign(&mut self.is_empty[3], value, is_nothing),
            "overflow" => assign(&mut self.cuts, value, |value| match value {
                [both] => Some([cuts(both)?; 2]),
                [across, down] => Some([cuts(across)?, cuts(down)?]),
                _ => None,
            }),
            "overflow-x" => assign(&mut self.cuts[0], value, |value| cuts(value.first()?)),
            "overflow-y" => assign(&mut self.cuts[1], value, |value| cuts(value.first()?)),
            "clip" => assign(&mut self.is_clipped, value, is_clipped),
            "clip-path" | "-webkit-clip-path" => {
                assign(&mut self.is_clipped_to_path, value, is_clipped_to_path);
            }
            "transform" | "-webkit-transform" => assign(&mut self.is_transformed, value, |value| {
                Some(value.iter().any(makes_unseen))
            }),
            "translate" => assign(&mut self.is_translated, value, |value| {
                Some(value.iter().any(is_far))
            }),
            "scale" => assign(&mut self.is_scaled, value, |value| {
                Some(value.iter().take(2).any(is_zero))
            }),
            _ => {}
        }
    }

    /// Whether nothing of the box is seen.
    pub(super) fn is_out(&self) -> bool {
        self.is_clipped
            || self.is_clipped_to_path
            || self.is_transformed
            || self.is_translated
            || self.is_scaled
            || self.is_indented
            || self.has_margin[0]
            || self.has_margin[3]
            || (self.is_positioned && self.is_moved.contains(&true))
            || (self.is_empty.contains(&true) && self.cuts.contains(&true))
    }
}

/// A length in pixels, as in a page of usual letters and on a usual screen.
pub(super) fn pixels(part: &Part) -> Option<f32> {
    let Part::Number(number, unit) = part else {
        return None;
    };
    let factor = match unit.as_str() {
        "" | "px" => 1.0,
        "pt" => 4.0 / 3.0,
        "pc" | "em" | "rem" => 16.0,
        "ch" | "ex" => 8.0,
        "in" => 96.0,
        "cm" => 37.8,
        "mm" => 3.78,
        "q" => 0.945,
        "%" => 0.16,
        "vw" | "vh" | "vmin" | "vmax" | "svh" | "lvh" | "dvh" => 10.0,
        _ => return None,
    };
    Some(number * factor)
}

/// Whether a length is `limit` or less; none when it is no length.
fn is_beyond(value: &[Part], limit: f32) -> Option<bool> {
    match value {
        [Part::Word(_) | Part::Function(..)] => Some(false),
        [part] => pixels(part).map(|px| px <= limit),
        _ => None,
    }
}

fn is_nothing(value: &[Part]) -> Option<bool> {
    match value {
        [Part::Number(number, _)] if *number < 0.0 => None,
        _ => is_beyond(value, 1.0),
    }
}

/// Lengths of the four sides, of which some may be left out.
fn sides(value: &[Part], limit: f32) -> Option<[bool; 4]> {
    let beyond = |part: &Part| is_beyond(std::slice::from_ref(part), limit);
    four(value).and_then(|[top, right, bottom, left]| {
        Some([beyond(top)?, beyond(right)?, beyond(bottom)?, beyond(left)?])
    })
}

fn four<T>(values: &[T]) -> Option<[&T; 4]> {
    match values {
        [all] => Some([all; 4]),
        [down, across] => Some([down, across, down, across]),
        [top, across, bottom] => Some([top, across, bottom, across]),
        [top, right, bottom, left] => Some([top, right, bottom, left]),
        _ => None,
    }
}

fn cuts(part: &Part) -> Option<bool> {
    let value = std::slice::from_ref(part);
    flag(
        value,
        &["hidden", "clip"],
        &["visible", "auto", "scroll", "overlay"],
    )
}

/// `clip: rect(…)` of which nothing is left.
fn is_clipped(value: &[Part]) -> Option<bool> {
    match value {
        [Part::Word(word)] => (word == "auto").then_some(false),
        [Part::Function(name, inside)] if name == "rect" => {
            let is_edge = |part: &&Part| **part != Part::Sign(',');
            let edges: Vec<_> = inside.iter().filter(is_edge).map(pixels).collect();
            let [top, right, bottom, left] = edges[..] else {
                return None;
            };
            // An edge that is `auto` is where the box ends.
            let is_narrow = |from: Option<f32>, to: Option<f32>| {
                to.is_some_and(|to| to - from.unwrap_or(0.0) <= 1.0)
            };
            Some(is_narrow(top, bottom) || is_narrow(left, right))
        }
        _ => None,
    }
}

fn is_clipped_to_path(value: &[Part]) -> Option<bool> {
    Some(value.iter().any(|part| {
        let Part::Function(name, inside) = part else {
            return false;
        };
        match name.as_str() {
            "inset" => {
                let end = inside.iter().position(|part| matches!(part, Part::Word(_)));
                let percent = |part: &Part| match part {
                    Part::Number(value, unit) if unit == "%" => *value,
                    _ => 0.0,
                };
                four(&inside[..end.unwrap_or(inside.len())]).is_some_and(
                    |[top, right, bottom, left]| {
                        percent(top) + percent(bottom) >= 100.0
                            || percent(left) + percent(right) >= 100.0
                    },
                )
            }
            "circle" | "ellipse" => inside.first().is_some_and(is_zero),
            "polygon" => numbers(inside).all(|number| number == 0.0),
            _ => false,
        }
    }))
}

fn numbers(parts: &[Part]) -> impl Iterator<Item = f32> {
    parts.iter().filter_map(|part| match part {
        Part::Number(number, _) => Some(*number),
        _ => None,
    })
}

fn is_zero(part: &Part) -> bool {
    matches!(part, Part::Number(number, _) if *number == 0.0)
}

fn is_far(part: &Part) -> bool {
    match part {
        // Of the box itself, which is some hundred pixels.
        Part::Number(number, unit) if unit == "%" => (number * 5.0).abs() >= FAR_PX,
        part => pixels(part).is_some_and(|px| px.abs() >= FAR_PX),
    }
}

/// Whether one of the functions of `transform` leaves nothing of a box, or moves it away.
fn makes_unseen(part: &Part) -> bool {
    let Part::Function(name, inside) = part else {
        return false;
    };
    let values: Vec<f32> = numbers(inside).collect();
    match (name.as_str(), &values[..]) {
        ("scale" | "scalex" | "scaley", values) => values.contains(&0.0),
        ("scale3d", values) => values.iter().take(2).any(|value| *value == 0.0),
        ("matrix", &[a, b, c, d, x, y]) => {
            (a * d - b * c).abs() < 1e-6 || x.abs() >= FAR_PX || y.abs() >= FAR_PX
        }
        ("translate" | "translatex" | "translatey" | "translate3d", _) => inside.iter().any(is_far),
        _ => false,
    }
}
