//! Reports as one page that needs no other file: the style of all pages, and the contents of a report without
//! pictures.

use std::fmt::Write as _;

use crate::plot::{Plot, escaped};

/// The style sheet of all reports.
const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1320px;padding:0 1rem;color:#111;background:#fff}
.pair{position:relative;overflow-x:auto}
.pair .stack{position:relative;width:max-content}
.pair img{display:block}
.pair img[hidden]{display:none}
.pair img.over{position:absolute;inset:0;clip-path:inset(0 0 0 50%)}
.pair input{width:100%;max-width:1280px}
.interrupted{border-left:4px solid #d55e00;padding:.2rem .8rem;font-weight:bold}
table{border-collapse:collapse}
td,th{text-align:left;padding:.15rem 1rem .15rem 0;border-bottom:1px solid #ddd;vertical-align:top;font-weight:normal}
th{color:#555}
pre{overflow-x:auto;font-size:13px;line-height:1.4}
figcaption,small{color:#555}
svg{max-width:100%;height:auto;display:block;margin:1rem 0}";

/// A page with a title and a body, which is HTML.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>{0}</title><style>{STYLE}</style><h1>{0}</h1>{body}</html>",
        escaped(title)
    )
}

/// A paragraph that says that Ctrl-C ended the measurement; empty where it did not.
pub(crate) fn interrupted(words: Option<&str>) -> String {
    words.map_or(String::new(), |words| format!("<p class=\"interrupted\">{words}</p>"))
}

/// The contents of a report without pictures.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// What was measured, as on the command line.
    pub about: String,
    /// The figures, by name.
    pub facts: Vec<(&'static str, String)>,
    /// The plots.
    pub plots: Vec<Plot>,
}

impl Contents {
    /// The page as HTML; `printed` is what the terminal shows.
    pub(crate) fn page(&self, title: &str, interrupted_by: Option<&str>, printed: &str) -> String {
        let mut body = interrupted(interrupted_by);
        // Writing to a String cannot fail.
        if !self.about.is_empty() {
            let _ = write!(body, "<p><code>{}</code></p>", escaped(&self.about));
        }
        if !self.facts.is_empty() {
            body.push_str("<table>");
            for (name, value) in &self.facts {
                let _ = write!(body, "<tr><th>{name}</th><td>{}</td></tr>", escaped(value));
            }
            body.push_str("</table>");
        }
        for plot in self.plots.iter().filter(|plot| !plot.is_empty()) {
            body.push_str(&plot.svg());
        }
        let _ = write!(body, "<h2>All figures</h2><pre>{}</pre>", escaped(printed));
        document(title, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Curve;

    #[test]
    fn a_page_has_facts_plots_and_figures_as_text_and_nothing_from_elsewhere() {
        let curve = |line| vec![Curve { name: "a".into(), line, dots: Vec::new() }];
        let plot = |line| Plot { title: "t".into(), curves: curve(line), ..Plot::default() };
        let contents = Contents {
            about: "lab <x>".to_owned(),
            facts: vec![("clients", "2 < 3".to_owned())],
            plots: vec![plot(vec![(0.0, 1.0), (1.0, 2.0)]), plot(Vec::new())],
        };
        let page = contents.page("Load", None, "a & b");
        assert!(page.contains("lab &lt;x&gt;") && page.contains("2 &lt; 3"), "{page}");
        assert!(page.contains("<pre>a &amp; b</pre>"));
        assert_eq!(page.matches("<svg").count(), 1, "a plot without curves is left out");
        assert!(!page.contains("interrupted\">"));
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("http"));
        let page = contents.page("Load", Some("interrupted after 1 of 2 s"), "");
        assert!(page.contains("<p class=\"interrupted\">interrupted after 1 of 2 s</p>"));
    }
}
