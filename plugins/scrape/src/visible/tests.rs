use scraper::Html;

use super::{Hidden, hide};
use crate::text;

fn seen(body: &str) -> String {
    let mut html = Html::parse_document(body);
    hide(&mut html);
    text::of(&html.root_element())
}

#[test]
fn what_is_not_shown_is_taken_out() {
    for body in [
        "<p hidden>SECRET</p>",
        "<div aria-hidden=' TRUE '><b>SECRET</b></div>",
        "<div style='display:none'>SECRET</div>",
        "<div STYLE='color:red; DISPLAY : None !important'><p>SECRET</p></div>",
        "<div style='visibility: hidden'>SECRET</div>",
        "<div style='opacity:0.0'>SECRET</div>",
        "<div style='opacity: 0%'>SECRET</div>",
        "<div style='font-size:0'>SECRET</div>",
        "<div style='font-size: 1px'><b>SECRET</b></div>",
        "<span style='font-size:.1em'>SECRET</span>",
        "<span style='color:#fff'>SECRET</span>",
        "<span style='color:#FFFFFF'>SECRET</span>",
        "<span style='color: white'>SECRET</span>",
        "<span style='color:rgb(255, 255, 255)'>SECRET</span>",
        "<span style='color:rgba(0,0,0,0)'>SECRET</span>",
        "<span style='color:rgb(0 0 0 / 0%)'>SECRET</span>",
        "<span style='color:transparent'>SECRET</span>",
        "<span style='color:#fefefe'>SECRET</span>",
        "<font color=white>SECRET</font>",
        "<div style='background:#123456'><i style='color:#123456'>SECRET</i></div>",
        "<table bgcolor=black><tr><td style='color:#000'>SECRET</table>",
        "<p style='position:absolute; left:-9999px'>SECRET</p>",
        "<p style='text-indent:-9999px'>SECRET</p>",
        "<p style='height:0;overflow:hidden'>SECRET</p>",
        "<p style='position:absolute;clip:rect(0,0,0,0)'>SECRET</p>",
        "<p style='clip-path: inset(50%)'>SECRET</p>",
        "<p style='transform: scale(0)'>SECRET</p>",
        "<span class='x sr-only'>SECRET</span>",
        "<!-- SECRET -->",
        "<?php SECRET ?>",
        "<dialog>SECRET</dialog>",
        "<template>SECRET</template>",
        "<script>SECRET</script><style>SECRET</style>",
        "<noscript>SECRET</noscript>",
        "<p style='display:/**/none'>SECRET</p>",
        "<p style='display:none/**/'>SECRET</p>",
        "<p style='/*;*/display:none'>SECRET</p>",
        "<p style='disp\\6c ay:none'>SECRET</p>",
        "<p style='display:n\\6fne'>SECRET</p>",
        "<p style='display:none! important'>SECRET</p>",
        "<p style='display:none!important;display:block'>SECRET</p>",
        "<p style='display:none;display:nothing'>SECRET</p>",
        "<p style='color:{;};display:none'>SECRET</p>",
        "<p style='visibility:collapse'>SECRET</p>",
        "<p style='opacity:calc(0)'>SECRET</p>",
        "<p style='font:0/0 a'>SECRET</p>",
        "<p style='font:bold 1px serif'>SECRET</p>",
        "<div style='font-size:0'><b style='font-size:1em'>SECRET</b></div>",
        "<p style='color:hsl(0,0%,100%)'>SECRET</p>",
        "<p style='color:hwb(120deg 100% 0%)'>SECRET</p>",
        "<p style='color:Canvas'>SECRET</p>",
        "<p style='color:snow'>SECRET</p>",
        "<p style='color:rgb(255 255 255 / .5)'>SECRET</p>",
        "<p style='-webkit-text-fill-color:transparent'>SECRET</p>",
        "<p style='background:navy;color:#000080'>SECRET</p>",
        "<p style='background:linear-gradient(red,blue);color:transparent'>SECRET</p>",
        "<font color=fffffe>SECRET</font>",
        "<p style='transform:scale(0,0)'>SECRET</p>",
        "<p style='transform:rotate(3deg) scaleX(0)'>SECRET</p>",
        "<p style='transform:matrix(0,0,0,0,1,1)'>SECRET</p>",
        "<p style='position:absolute;transform:translate(-9999px)'>SECRET</p>",
        "<p style='scale:0'>SECRET</p>",
        "<p style='filter:blur(1px) opacity(0)'>SECRET</p>",
        "<p style='position:absolute;inset:-9999px auto auto -9999px'>SECRET</p>",
        "<p style='margin:0 0 0 -9999px'>SECRET</p>",
        "<p style='clip-path:polygon(0 0, 0 0, 0 0)'>SECRET</p>",
        "<div popover><p>SECRET</p></div>",
        "<noembed>SECRET</noembed><noframes>SECRET</noframes>",
        "<audio>SECRET</audio><video><p>SECRET</p></video>",
        "<meter value=1 max=2>SECRET</meter><progress>SECRET</progress>",
        "<ruby><rp>SECRET</rp></ruby>",
    ] {
        assert_eq!(
            seen(&format!("<p>before</p>{body}<p>after</p>"))
                .split_whitespace()
                .collect::<Vec<_>>(),
            ["before", "after"],
            "{body}"
        );
    }
}

#[test]
fn what_is_shown_stays() {
    for body in [
        "<p hidden=until-found>shown</p>",
        "<p aria-hidden=false>shown</p>",
        "<div style='display:block; opacity:.9; color:#111'>shown</div>",
        "<div style='font-size:0'><span style='font-size:14px'>shown</span></div>",
        "<div style='background:#000'><p style='color:#fff'>shown</p></div>",
        "<table><tr><td bgcolor='#003366'><font color='#ffffff'>shown</font></table>",
        "<div style='color:white'><p style='color:black'>shown</p></div>",
        "<p style='position:absolute; left:10px; overflow:hidden; height:20px'>shown</p>",
        "<p style='margin-left:-20px; font-size:62.5%'>shown</p>",
        "<dialog open>shown</dialog>",
        "<details><summary>shown</summary></details>",
        "<p style='color:;;:x;font-size:huge;opacity:a'>shown</p>",
        "<p style='display:none;display:block'>shown</p>",
        "<p style='display:block!important;display:none'>shown</p>",
        "<p style='--display:none;content:\";display:none\"'>shown</p>",
        "<p style='opacity:0;opacity:1;visibility:hidden;visibility:inherit'>shown</p>",
        "<div style='font-size:0'><b style='font-size:small'>shown</b></div>",
        "<h1 style='background: navy; color: white'>shown</h1>",
        "<p style='background-color: rgb(0, 51, 102); color: rgb(255, 255, 255);'>shown</p>",
        "<p style='background:linear-gradient(90deg,#003366,#336699);color:#fff'>shown</p>",
        "<div style='background-image:url(hero.jpg);color:#ffffff'><h2>shown</h2></div>",
        "<p style='background:var(--dark);color:white'>shown</p>",
        "<p style='background:oklch(20% 0 0);color:white'>shown</p>",
        "<p style='background:hsl(240 100% 20%);color:white'>shown</p>",
        "<p style='color:var(--ink)'>shown</p>",
        "<div style='background:#000'><p style='background:transparent;color:#fff'>shown</p></div>",
        "<p style='background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent'>shown</p>",
        "<table><tr bgcolor=maroon><td><font color=white>shown</font></table>",
        "<table bgcolor=003366><tr><td><font color=white>shown</font></table>",
        "<table background=a.png><tr><td><font color=white>shown</font></table>",
        "<div style='color:white'><a href=x>shown</a></div>",
        "<div style='color:white'><mark>shown</mark></div>",
        "<p style='transform:translateX(-1200px)'>shown</p>",
        "<p style='clip:rect(0,100px,50px,0)'>shown</p>",
        "<p style='clip-path:inset(0 50% 0 0)'>shown</p>",
    ] {
        assert_eq!(seen(body), "shown", "{body}");
    }
}

#[test]
fn text_that_a_style_sheet_may_make_readable_stays() {
    for (head, body, stays) in [
        (
            "<link rel='stylesheet' href=a.css>",
            "<div class=hero><p style='color:#fff'>text</div>",
            true,
        ),
        (
            "<style>.hero { background: navy }</style>",
            "<p id=hero style='color:#fff'>text",
            true,
        ),
        (
            "<style>p { margin: 0 }</style>",
            "<div class=hero><p style='color:#fff'>text</div>",
            false,
        ),
        (
            "",
            "<div class=hero><p style='color:#fff'>text</div>",
            false,
        ),
        (
            "<link rel=stylesheet href=a.css>",
            "<p style='color:#fff'>text",
            false,
        ),
        (
            "<link rel=stylesheet href=a.css>",
            "<p class=hero style='color:#fff;background:#fff'>text",
            false,
        ),
        (
            "<link rel=stylesheet href=a.css>",
            "<p class=hero style='color:transparent'>text",
            false,
        ),
    ] {
        let text = seen(&format!("<head>{head}</head>{body}"));
        assert_eq!(text == "text", stays, "{head} {body}");
    }
}

#[test]
fn what_scripts_bring_in_stays_where_there_are_scripts() {
    let hidden = |body: &str| -> (String, Hidden) {
        let mut html = Html::parse_document(body);
        let hidden = hide(&mut html);
        (text::of(&html.root_element()), hidden)
    };
    let script = "<script src=a.js></script>";
    for (body, stays, is_told) in [
        (
            "<p style='opacity:0;transform:translateY(20px)'>text",
            true,
            false,
        ),
        (
            "<p style='opacity:0;transition:opacity 1s'>text",
            true,
            false,
        ),
        ("<p style='opacity:0' data-aos=fade-up>text", true, false),
        ("<p style='opacity:0'>text", false, true),
        ("<p style='opacity:0;transform:none'>text", false, true),
        (
            "<p style='opacity:0;display:none;transition:all 1s'>text",
            false,
            false,
        ),
    ] {
        let (text, found) = hidden(&format!("{script}{body}"));
        assert_eq!(
            (text == "text", found.has_transparent),
            (stays, is_told),
            "{body}"
        );
        let (text, found) = hidden(body);
        assert_eq!(
            (text.as_str(), found.has_transparent),
            ("", false),
            "{body}"
        );
    }
}
