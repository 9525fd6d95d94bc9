//! Colors, as far as they can be told without a style sheet.

use cssparser::color::{parse_hash_color, parse_named_color};

use super::declarations::Part;

/// A color.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Color {
    /// Red, green and blue, 0 to 255.
    rgb: [f32; 3],
    /// From 0, transparent, to 1.
    alpha: f32,
}

/// What is said of a color.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Paint {
    /// It is this one.
    Known(Color),
    /// An image, a variable, a color of the system, or of a style sheet.
    Unknown,
}

/// Functions that make a color which is not worked out here.
const FUNCTIONS: [&str; 11] = [
    "lab",
    "lch",
    "oklab",
    "oklch",
    "color",
    "color-mix",
    "light-dark",
    "device-cmyk",
    "contrast-color",
    "var",
    "env",
];
/// Names of colors that the system has for parts of its windows.
const SYSTEM: [&str; 14] = [
    "linktext",
    "visitedtext",
    "activetext",
    "buttonface",
    "buttontext",
    "buttonborder",
    "fieldtext",
    "highlight",
    "highlighttext",
    "selecteditem",
    "selecteditemtext",
    "mark",
    "marktext",
    "graytext",
];

impl Color {
    /// What a page without colors has behind its text.
    pub const WHITE: Self = Self::opaque([255.0; 3]);
    /// What its text has.
    pub const BLACK: Self = Self::opaque([0.0; 3]);
    /// What is behind text that is marked.
    pub const YELLOW: Self = Self::opaque([255.0, 255.0, 0.0]);

    /// What elements without a background have.
    pub const TRANSPARENT: Self = Self {
        rgb: [255.0; 3],
        alpha: 0.0,
    };

    const fn opaque(rgb: [f32; 3]) -> Self {
        Self { rgb, alpha: 1.0 }
    }

    /// Whether nothing of it is seen, whatever is behind it.
    pub fn is_transparent(&self) -> bool {
        self.alpha <= 0.05
    }

    /// Whether nothing is seen through it.
    pub fn is_opaque(&self) -> bool {
        self.alpha >= 1.0
    }

    /// What is seen of it over `other`.
    pub fn over(&self, other: &Self) -> Self {
        let mut rgb = self.rgb;
        for (part, behind) in rgb.iter_mut().zip(other.rgb) {
            *part = *part * self.alpha + behind * (1.0 - self.alpha);
        }
        Self::opaque(rgb)
    }

    /// Whether text of this color cannot be told from what is behind it.
    pub fn vanishes_on(&self, background: &Self) -> bool {
        let seen = self.over(background);
        self.is_transparent()
            || seen
                .rgb
                .iter()
                .zip(background.rgb)
                .all(|(one, other)| (one - other).abs() <= 8.0)
    }
}

/// What a piece of a value says of a color; none when it is no color.
pub(super) fn of(part: &Part) -> Option<Paint> {
    match part {
        Part::Word(word) => named(word),
        Part::Hash(digits) => {
            let (red, green, blue, alpha) = parse_hash_color(digits.as_bytes()).ok()?;
            let rgb = [red, green, blue].map(f32::from);
            Some(Paint::Known(Color { rgb, alpha }))
        }
        Part::Function(name, _) if FUNCTIONS.contains(&name.as_str()) => Some(Paint::Unknown),
        Part::Function(name, inside) => function(name, inside),
        _ => None,
    }
}

fn named(word: &str) -> Option<Paint> {
    Some(match word {
        "transparent" => Paint::Known(Color::TRANSPARENT),
        "canvas" | "field" => Paint::Known(Color::WHITE),
        "canvastext" => Paint::Known(Color::BLACK),
        _ if SYSTEM.contains(&word) => Paint::Unknown,
        _ => {
            let (red, green, blue) = parse_named_color(word).ok()?;
            Paint::Known(Color::opaque([red, green, blue].map(f32::from)))
        }
    })
}

/// `rgb(…)`, `hsl(…)` and `hwb(…)`, with commas or without. One of them that is worked out from another color is not known.
fn function(name: &str, inside: &[Part]) -> Option<Paint> {
    if !matches!(name, "rgb" | "rgba" | "hsl" | "hsla" | "hwb") {
        return None;
    }
    let mut values = Vec::new();
    for part in inside {
        match part {
            Part::Number(value, unit) => values.push((*value, unit.as_str())),
            Part::Word(word) if word == "none" => values.push((0.0, "")),
            Part::Sign(',' | '/') => {}
            _ => return Some(Paint::Unknown),
        }
    }
    let (&[one, two, three], rest) = values.split_first_chunk::<3>()?;
    let alpha = rest.first().map_or(1.0, |alpha| share(*alpha, 1.0));
    let byte = |(value, unit)| share((value, unit), 255.0) * 255.0;
    let percent = |(value, _): (f32, &str)| (value / 100.0).clamp(0.0, 1.0);
    let rgb = match name {
        "rgb" | "rgba" => [byte(one), byte(two), byte(three)],
        "hwb" => of_whiteness(degrees(one), percent(two), percent(three)),
        _ => of_lightness(degrees(one), percent(two), percent(three)),
    };
    Some(Paint::Known(Color { rgb, alpha }))
}

/// A value as a share of `full`, which percentages are already.
fn share((value, unit): (f32, &str), full: f32) -> f32 {
    let share = value / if unit == "%" { 100.0 } else { full };
    share.clamp(0.0, 1.0)
}

fn degrees((value, unit): (f32, &str)) -> f32 {
    match unit {
        "rad" => value.to_degrees(),
        "turn" => value * 360.0,
        "grad" => value * 0.9,
        _ => value,
    }
}

fn of_lightness(hue: f32, saturation: f32, lightness: f32) -> [f32; 3] {
    let chroma = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|offset| {
        let at = (offset + hue / 30.0).rem_euclid(12.0);
        let value = lightness - chroma * (at - 3.0).min(9.0 - at).clamp(-1.0, 1.0);
        value * 255.0
    })
}

fn of_whiteness(hue: f32, white: f32, black: f32) -> [f32; 3] {
    let sum = (white + black).max(1.0);
    let (white, black) = (white / sum, black / sum);
    of_lightness(hue, 1.0, 0.5).map(|part| part * (1.0 - white - black) + white * 255.0)
}

/// The color in an attribute such as `bgcolor`, where browsers make one of nearly every text.
///
/// Source: "rules for parsing a legacy color value" of the HTML standard.
pub(super) fn of_attribute(text: &str) -> Option<Color> {
    let text = text.trim();
    if text.is_empty() || text.eq_ignore_ascii_case("transparent") {
        return None;
    }
    if let Ok((red, green, blue)) = parse_named_color(text) {
        return Some(Color::opaque([red, green, blue].map(f32::from)));
    }
    let digits = text.strip_prefix('#');
    if let Some(digits) = digits.filter(|digits| digits.len() == 3)
        && let Ok((red, green, blue, _)) = parse_hash_color(digits.as_bytes())
    {
        return Some(Color::opaque([red, green, blue].map(f32::from)));
    }
    let mut digits: Vec<u8> = digits.unwrap_or(text).bytes().take(128).collect();
    for digit in &mut digits {
        if !digit.is_ascii_hexdigit() {
            *digit = b'0';
        }
    }
    while digits.is_empty() || !digits.len().is_multiple_of(3) {
        digits.push(b'0');
    }
    let width = digits.len() / 3;
    let mut parts: Vec<&[u8]> = digits
        .chunks(width)
        .map(|part| &part[width.saturating_sub(8)..])
        .collect();
    while parts
        .iter()
        .all(|part| part.len() > 2 && part.first() == Some(&b'0'))
    {
        parts = parts.iter().map(|part| &part[1..]).collect();
    }
    let mut rgb = [0.0; 3];
    for (value, part) in rgb.iter_mut().zip(parts) {
        let part = std::str::from_utf8(&part[..part.len().min(2)]).ok()?;
        *value = f32::from(u8::from_str_radix(part, 16).ok()?);
    }
    Some(Color::opaque(rgb))
}
