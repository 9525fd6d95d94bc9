//! What an element says of its own looks, as far as it makes text unreadable.

mod color;
mod declarations;
mod extent;

use scraper::node::Element;

pub use self::color::{Color, Paint};
use self::declarations::Part;
use self::extent::Extent;

/// The attributes and inline declarations that count.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Style {
    /// The element is not shown, with all it holds.
    pub is_hidden: bool,
    /// The element is transparent, with all it holds.
    pub fade: Option<Fade>,
    /// The color of its text, if that is not the one around it.
    pub color: Option<Paint>,
    /// What is behind it, if that is not what is behind the element around it.
    pub background: Option<Paint>,
    /// The size of its text.
    pub font: Option<Font>,
}

/// How an element is transparent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fade {
    /// It only is.
    Plain,
    /// In the way of those that scripts bring in: it is moved, turned or grows at the same time, or has a transition.
    Animated,
}

/// The size of text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Font {
    /// In pixels.
    Pixels(f32),
    /// As a part of the size around it.
    Times(f32),
}

/// Elements with attributes for their background.
const COLORED: [&str; 9] = [
    "body", "table", "thead", "tbody", "tfoot", "tr", "td", "th", "marquee",
];

/// Values of `display`. Others are no value, so they change nothing.
const DISPLAYS: [&str; 27] = [
    "none",
    "block",
    "inline",
    "inline-block",
    "flow",
    "flow-root",
    "flex",
    "inline-flex",
    "grid",
    "inline-grid",
    "table",
    "inline-table",
    "table-row",
    "table-cell",
    "table-column",
    "table-row-group",
    "table-column-group",
    "table-header-group",
    "table-footer-group",
    "table-caption",
    "list-item",
    "contents",
    "run-in",
    "ruby",
    "-webkit-box",
    "-webkit-inline-box",
    "math",
];

/// Values that take what the parent, the browser or another rule says.
const ELSEWHERE: [&str; 5] = ["inherit", "initial", "unset", "revert", "revert-layer"];

/// Functions that make a picture.
const IMAGES: [&str; 14] = [
    "url",
    "src",
    "image",
    "image-set",
    "-webkit-image-set",
    "cross-fade",
    "element",
    "paint",
    "linear-gradient",
    "radial-gradient",
    "conic-gradient",
    "repeating-linear-gradient",
    "repeating-radial-gradient",
    "repeating-conic-gradient",
];

impl Style {
    /// What `element` says.
    pub fn of(element: &Element) -> Self {
        let mut style = Self::of_kind(element);
        let mut inline = None;
        for (name, value) in element.attrs() {
            let known = || color::of_attribute(value).map(Paint::Known);
            match (element.name(), name) {
                ("font", "color") | ("body", "text") => style.color = known().or(style.color),
                (_, "style") => inline = Some(value),
                (kind, "bgcolor") if COLORED.contains(&kind) => {
                    // A picture counts more.
                    style.background = style.background.or(known());
                }
                (kind, "background") if COLORED.contains(&kind) => {
                    style.background = Some(Paint::Unknown);
                }
                _ => {}
            }
        }
        // Counts more than the attributes for the same, wherever it stands.
        if let Some(inline) = inline {
            Inline::of(inline).change(&mut style);
        }
        style
    }

    /// What browsers say of elements that have colors of their own.
    fn of_kind(element: &Element) -> Self {
        let (color, background) = match element.name() {
            "a" if element.attr("href").is_some() => (Some(Paint::Unknown), None),
            "mark" => (
                Some(Paint::Known(Color::BLACK)),
                Some(Paint::Known(Color::YELLOW)),
            ),
            "button" | "input" | "select" | "textarea" => {
                (Some(Paint::Unknown), Some(Paint::Unknown))
            }
            _ => (None, None),
        };
        Self {
            color,
            background,
            ..Self::default()
        }
    }
}

/// What the declarations of a `style` attribute come to.
#[derive(Default)]
struct Inline {
    is_absent: bool,
    is_invisible: bool,
    is_skipped: bool,
    is_transparent: bool,
    is_filtered: bool,
    is_animated: bool,
    extent: Extent,
    color: Option<Paint>,
    /// What replaces the color of the letters.
    fill: Option<Paint>,
    background: Option<Paint>,
    image: Option<Paint>,
    /// The background is seen in the shape of the letters.
    is_cut_out: bool,
    font: Option<Font>,
}

impl Inline {
    fn of(style: &str) -> Self {
        let mut inline = Self::default();
        for (name, value) in declarations::of(style) {
            inline.read(&name, &value);
        }
        inline
    }

    fn change(&self, style: &mut Style) {
        style.is_hidden = self.is_absent
            || self.is_invisible
            || self.is_skipped
            || self.is_filtered
            || self.extent.is_out();
        style.fade = self.is_transparent.then_some(match self.is_animated {
            true => Fade::Animated,
            false => Fade::Plain,
        });
        let color = match self.is_cut_out {
            true => Some(Paint::Unknown),
            false => self.fill.or(self.color),
        };
        style.color = color.or(style.color);
        style.background = self.image.or(self.background).or(style.background);
        style.font = self.font;
    }

    fn read(&mut self, name: &str, value: &[Part]) {
        match name {
            "display" => assign(&mut self.is_absent, value, display),
            "visibility" => assign(&mut self.is_invisible, value, |value| {
                flag(value, &["hidden", "collapse"], &["visible"])
            }),
            "content-visibility" => assign(&mut self.is_skipped, value, |value| {
                flag(value, &["hidden"], &["visible", "auto"])
            }),
            "opacity" => assign(&mut self.is_transparent, value, is_none_seen),
            "filter" | "-webkit-filter" => assign(&mut self.is_filtered, value, |value| {
                Some(value.iter().any(|part| {
                    matches!(part, Part::Function(name, inside)
                        if name == "opacity" && is_none_seen(inside) == Some(true))
                }))
            }),
            "animation" | "animation-name" | "transition" | "will-change" => {
                self.is_animated |= !is_elsewhere(value) && word(value) != Some("none");
            }
            "color" => self.color = ink(value, self.color),
            "-webkit-text-fill-color" => self.fill = ink(value, self.fill),
            "background" => {
                let color = value.iter().find_map(color::of);
                self.background = Some(color.unwrap_or(Paint::Known(Color::TRANSPARENT)));
                self.image = image(value);
                self.is_cut_out = cuts_out(value);
            }
            "background-color" => self.background = ground(value, self.background),
            "background-image" => self.image = image(value),
            "background-clip" | "-webkit-background-clip" => self.is_cut_out = cuts_out(value),
            "font-size" => assign(&mut self.font, value, |value| match value {
                [part] => font(part).map(Some),
                _ => None,
            }),
            "font" => assign(&mut self.font, value, font_of_all),
            _ => {
                // What is moved or turned at first is what scripts bring in.
                self.is_animated |= matches!(name, "transform" | "translate" | "scale" | "rotate")
                    && word(value) != Some("none");
                self.extent.read(name, value);
            }
        }
    }
}

/// Sets what a value says. One that is none changes nothing, and one that comes from elsewhere is as if nothing had been said.
fn assign<T: Default>(to: &mut T, value: &[Part], read: impl Fn(&[Part]) -> Option<T>) {
    if is_elsewhere(value) {
        *to = T::default();
    } else if let Some(read) = read(value) {
        *to = read;
    }
}

/// Whether a value is made from what does not stand in it.
fn is_elsewhere(value: &[Part]) -> bool {
    word(value).is_some_and(|word| ELSEWHERE.contains(&word))
        || value.iter().any(|part| match part {
            Part::Function(_, inside) => part.calls(&["var", "env"]) || is_elsewhere(inside),
            _ => false,
        })
}

/// The word that a value is.
fn word(value: &[Part]) -> Option<&str> {
    match value {
        [Part::Word(word)] => Some(word),
        _ => None,
    }
}

fn flag(value: &[Part], yes: &[&str], no: &[&str]) -> Option<bool> {
    let word = word(value)?;
    (yes.contains(&word) || no.contains(&word)).then(|| yes.contains(&word))
}

fn display(value: &[Part]) -> Option<bool> {
    let is_known = |part: &Part| matches!(part, Part::Word(word) if DISPLAYS.contains(&&**word) || word.starts_with("ruby"));
    (!value.is_empty() && value.iter().all(is_known)).then(|| word(value) == Some("none"))
}

fn is_none_seen(value: &[Part]) -> Option<bool> {
    match value {
        [Part::Number(value, unit)] if unit.is_empty() => Some(*value <= 0.05),
        [Part::Number(value, unit)] if unit == "%" => Some(*value <= 5.0),
        _ => None,
    }
}

/// The color of text; none is the one around it.
fn ink(value: &[Part], before: Option<Paint>) -> Option<Paint> {
    match value {
        [Part::Word(word)] => match word.as_str() {
            "inherit" | "unset" | "revert" | "revert-layer" | "currentcolor" => None,
            "initial" => Some(Paint::Known(Color::BLACK)),
            _ => color::of(&value[0]).or(before),
        },
        [part] => color::of(part).or(before),
        _ => before,
    }
}

/// The color behind text.
fn ground(value: &[Part], before: Option<Paint>) -> Option<Paint> {
    match value {
        [Part::Word(word)] if ELSEWHERE.contains(&&**word) => None,
        [Part::Word(word)] if word == "currentcolor" => Some(Paint::Unknown),
        [part] => color::of(part).or(before),
        _ => before,
    }
}

/// What a picture behind text makes of its background.
fn image(value: &[Part]) -> Option<Paint> {
    let is_one = |part: &Part| part.calls(&IMAGES) || part.calls(&["var", "env"]);
    value.iter().any(is_one).then_some(Paint::Unknown)
}

fn cuts_out(value: &[Part]) -> bool {
    value.contains(&Part::Word("text".to_owned()))
}

fn font(part: &Part) -> Option<Font> {
    match part {
        Part::Number(value, _) if *value < 0.0 => None,
        Part::Number(value, unit) => match unit.as_str() {
            "%" => Some(Font::Times(value / 100.0)),
            "em" => Some(Font::Times(*value)),
            "ex" | "ch" => Some(Font::Times(value / 2.0)),
            _ => extent::pixels(part).map(Font::Pixels),
        },
        Part::Word(word) => match word.as_str() {
            "xx-small" | "x-small" => Some(Font::Pixels(9.0)),
            "small" | "medium" | "large" | "x-large" | "xx-large" | "xxx-large" => {
                Some(Font::Pixels(16.0))
            }
            "smaller" | "larger" => Some(Font::Times(1.0)),
            _ => None,
        },
        // What a function comes to is not known: as it is usual.
        Part::Function(..) => Some(Font::Pixels(16.0)),
        _ => None,
    }
}

/// The size in a value of `font`: the first length. Numbers without a unit are weights.
fn font_of_all(value: &[Part]) -> Option<Option<Font>> {
    let mut sizes = value.iter().filter_map(|part| match part {
        Part::Number(value, unit) if *value != 0.0 && unit.is_empty() => None,
        Part::Function(..) => None,
        part => font(part),
    });
    sizes.next().map(Some)
}
