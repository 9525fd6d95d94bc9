//! The addresses of links and images: complete ones, so that they can be followed.

use ego_tree::NodeId;
use html5ever::local_name;
use html5ever::tendril::StrTendril;
use scraper::node::Node;
use scraper::{ElementRef, Html};
use url::Url;

/// Bytes of the addresses that are completed in a page. One that begins with a long address could come to many times its size.
const COMPLETED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What the addresses in a page are relative to: what it says itself, or where it stands.
pub(super) fn base(html: &Html, url: &Url) -> Url {
    let mut elements = html.tree.nodes().filter_map(ElementRef::wrap);
    let base = elements.find_map(|element| match element.value().name() {
        "base" => element.attr("href"),
        _ => None,
    });
    base.and_then(|base| url.join(base.trim()).ok())
        .filter(|base| matches!(base.scheme(), "https" | "http"))
        .unwrap_or_else(|| url.clone())
}

/// Completes the addresses of links and images. What only leads to another place of the page stays.
pub(super) fn complete(html: &mut Html, base: &Url) {
    let mut n_left = COMPLETED_BYTES_MAX;
    for node in html.tree.values_mut() {
        let Node::Element(element) = node else {
            continue;
        };
        let kind = match element.name() {
            "a" => local_name!("href"),
            "img" => local_name!("src"),
            _ => continue,
        };
        let Some((_, value)) = element
            .attrs
            .iter_mut()
            .find(|(name, _)| name.local == kind)
        else {
            continue;
        };
        let Some(url) = completed(value, base) else {
            continue;
        };
        let Some(left) = n_left.checked_sub(url.as_str().len()) else {
            return;
        };
        n_left = left;
        *value = StrTendril::from(url.as_str());
    }
}

fn completed(address: &str, base: &Url) -> Option<Url> {
    let url = match address.starts_with('#') {
        true => return None,
        false => base.join(address).ok()?,
    };
    is_followed(&url).then_some(url)
}

fn is_followed(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "http" | "mailto")
}

/// Puts the address of each link behind its text.
pub(super) fn write(html: &mut Html) {
    let links: Vec<(NodeId, String)> = html
        .tree
        .nodes()
        .filter_map(ElementRef::wrap)
        .filter(|link| link.value().name() == "a")
        .filter_map(|link| {
            let url = Url::parse(link.attr("href")?).ok()?;
            is_followed(&url).then(|| (link.id(), url.into()))
        })
        .collect();
    for (id, address) in links {
        if let Some(mut link) = html.tree.get_mut(id) {
            let text = scraper::node::Text {
                text: StrTendril::from(format!(" <{address}>")),
            };
            link.append(Node::Text(text));
        }
    }
}
