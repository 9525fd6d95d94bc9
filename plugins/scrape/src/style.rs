//! What an element says of its own looks, as far as it makes text unreadable.

use scraper::node::Element;

/// The attributes and inline declarations that count.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Style {
    /// The element is not shown, with all it holds.
    pub is_hidden: bool,
    /// The color of its text.
    pub color: Option<Color>,
    /// The color behind it.
    pub background: Option<Color>,
    /// The size of its text in pixels.
    pub font_px: Option<f32>,
}

/// A color.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Color {
    /// Red, green and blue, 0 to 255.
    rgb: [f32; 3],
    /// From 0, transparent, to 1.
    alpha: f32,
}

impl Color {
    /// What a page without colors has behind its text.
    pub const WHITE: Self = Self {
        rgb: [255.0; 3],
        alpha: 1.0,
    };

    /// Whether text of this color cannot be told from what is behind it.
    pub fn vanishes_on(&self, background: &Self) -> bool {
        self.alpha <= 0.05
            || self
                .rgb
                .iter()
                .zip(background.rgb)
                .all(|(one, other)| (one - other).abs() <= 8.0)
    }
}

impl Style {
    /// What `element` says.
    pub fn of(element: &Element) -> Self {
        let mut style = Self::default();
        let mut inline = None;
        for (name, value) in element.attrs() {
            match name {
                "color" => style.color = color(value),
                "bgcolor" => style.background = color(value),
                "style" => inline = Some(value),
                _ => {}
            }
        }
        // Counts more than the attributes for the same, wherever it stands.
        let mut offscreen = Offscreen::default();
        for (name, value) in inline.into_iter().flat_map(declarations) {
            style.read(&name, &value);
            offscreen.read(&name, &value);
        }
        style.is_hidden |= offscreen.is_out();
        style
    }

    fn read(&mut self, name: &str, value: &str) {
        match name {
            "display" => self.is_hidden |= value == "none",
            "visibility" => self.is_hidden |= matches!(value, "hidden" | "collapse"),
            "content-visibility" => self.is_hidden |= value == "hidden",
            "opacity" => {
                self.is_hidden |= number(value)
                    .is_some_and(|(value, unit)| value <= if unit == "%" { 5.0 } else { 0.05 });
            }
            "transform" => self.is_hidden |= value.replace(' ', "").contains("scale(0)"),
            "clip-path" => self.is_hidden |= is_clipped(value),
            "color" => self.color = color(value).or(self.color),
            "background" | "background-color" => {
                self.background = value.split_whitespace().find_map(color).or(self.background);
            }
            "font-size" => self.font_px = pixels(value).or(self.font_px),
            _ => {}
        }
    }
}

/// Boxes that are moved away, or so small that nothing of them is seen.
#[derive(Default)]
struct Offscreen {
    is_positioned: bool,
    is_moved: bool,
    is_empty: bool,
    cuts: bool,
    is_clipped: bool,
}

impl Offscreen {
    fn read(&mut self, name: &str, value: &str) {
        let px = pixels(value);
        match name {
            "position" => self.is_positioned |= matches!(value, "absolute" | "fixed"),
            "left" | "top" | "right" | "bottom" => {
                self.is_moved |= px.is_some_and(|px| px <= -500.0);
            }
            "text-indent" | "margin-left" | "margin-top" => {
                self.is_clipped |= px.is_some_and(|px| px <= -900.0);
            }
            "width" | "height" | "max-height" | "max-width" => {
                self.is_empty |= px.is_some_and(|px| px <= 1.0);
            }
            "overflow" | "overflow-x" | "overflow-y" => {
                self.cuts |= matches!(value, "hidden" | "clip");
            }
            "clip" => {
                self.is_clipped |= value.replace(' ', "").starts_with("rect(0")
                    || value.replace(' ', "").starts_with("rect(1px,1px");
            }
            _ => {}
        }
    }

    fn is_out(&self) -> bool {
        self.is_clipped || (self.is_positioned && self.is_moved) || (self.is_empty && self.cuts)
    }
}

fn is_clipped(value: &str) -> bool {
    let value = value.replace(' ', "");
    value.starts_with("inset(100%")
        || value.starts_with("inset(50%")
        || value.starts_with("circle(0")
}

/// The declarations of a `style` attribute, in small letters and without `!important`.
fn declarations(style: &str) -> impl Iterator<Item = (String, String)> {
    style.split(';').filter_map(|declaration| {
        let (name, value) = declaration.split_once(':')?;
        let value = value.to_ascii_lowercase().replace("!important", "");
        Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    })
}

/// A number and its unit.
fn number(value: &str) -> Option<(f32, &str)> {
    let end = value
        .find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | '-' | '+'))
        .unwrap_or(value.len());
    Some((value[..end].parse().ok()?, value[end..].trim()))
}

/// A length in pixels, as in a page of usual letters and on a usual screen.
fn pixels(value: &str) -> Option<f32> {
    let (number, unit) = number(value)?;
    let factor = match unit {
        "" | "px" => 1.0,
        "pt" => 4.0 / 3.0,
        "em" | "rem" | "ch" | "ex" => 16.0,
        "%" => 0.16,
        "vw" | "vh" => 10.0,
        _ => return None,
    };
    Some(number * factor)
}

fn color(text: &str) -> Option<Color> {
    let text = text.trim().to_ascii_lowercase();
    let opaque = |rgb| Some(Color { rgb, alpha: 1.0 });
    match text.as_str() {
        "white" => Some(Color::WHITE),
        "black" => opaque([0.0; 3]),
        "transparent" => Some(Color {
            alpha: 0.0,
            ..Color::WHITE
        }),
        _ if text.starts_with('#') => hexadecimal(&text[1..]),
        _ if text.starts_with("rgb") => function(&text),
        _ => None,
    }
}

fn hexadecimal(digits: &str) -> Option<Color> {
    if !digits.is_ascii() {
        return None;
    }
    let width = match digits.len() {
        3 | 4 => 1,
        6 | 8 => 2,
        _ => return None,
    };
    let mut parts = [255.0; 4];
    for (part, digits) in parts.iter_mut().zip(digits.as_bytes().chunks(width)) {
        let value = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        *part = f32::from(if width == 1 { value * 17 } else { value });
    }
    let [red, green, blue, alpha] = parts;
    Some(Color {
        rgb: [red, green, blue],
        alpha: alpha / 255.0,
    })
}

/// `rgb(…)` and `rgba(…)`, with commas or without.
fn function(text: &str) -> Option<Color> {
    let inside = text[text.find('(')? + 1..].trim_end_matches(')');
    let mut parts = inside
        .split([',', '/', ' '])
        .filter(|part| !part.is_empty())
        .map(number);
    let mut part = || {
        let (value, unit) = parts.next()??;
        Some(if unit == "%" { value * 2.55 } else { value })
    };
    let rgb = [part()?, part()?, part()?];
    let alpha = parts.next().flatten().map_or(
        1.0,
        |(value, unit)| if unit == "%" { value / 100.0 } else { value },
    );
    Some(Color { rgb, alpha })
}
