use scraper::Html;

use super::hide;
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
    ] {
        assert_eq!(seen(body), "shown", "{body}");
    }
}
