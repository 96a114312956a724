//! The little of SVG that plots need: shapes with classes, and colours that follow the reader's choice of light or dark.

/// Colours of series, in the order of their classes `c0`, `c1` and so on; see [`STYLE`].
pub(super) const COLOURS: usize = 6;

/// The background is painted too: a page can be dark where the reader's system is light.
const STYLE: &str = "
:root { --back: #ffffff; --ink: #1f2328; --soft: #59636e; --grid: #d8dee4;
  --c0: #0b6bcb; --c1: #c4500a; --c2: #2b8a3e; --c3: #8250df; --c4: #bf3989; --c5: #7a6a00; }
@media (prefers-color-scheme: dark) {
  :root { --back: #0d1117; --ink: #e6edf3; --soft: #9198a1; --grid: #30363d;
    --c0: #4da3ff; --c1: #ff9e4a; --c2: #56d364; --c3: #bc8cff; --c4: #ff7eb6; --c5: #e3c34a; }
}
text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.title { font-size: 15px; font-weight: 600; }
.soft { fill: var(--soft); }
.grid { stroke: var(--grid); stroke-width: 1; }
.back { fill: var(--back); }
.line { fill: none; stroke-width: 1.5; opacity: 0.6; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); }
.c3 { fill: var(--c3); } .c4 { fill: var(--c4); } .c5 { fill: var(--c5); }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); }
.s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); }
.faint { opacity: 0.45; }
";

/// Where a text ends up beside its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing in the making; positions are in pixels from the upper left.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let mut svg = Self {
            width,
            height,
            title: escaped(title),
            body: String::new(),
        };
        svg.text(16.0, 26.0, "title", Anchor::Start, title);
        svg
    }

    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escaped(text);
        self.add(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\"{anchor}>{text}</text>"
        ));
    }

    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        self.add(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\"/>"
        ));
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.add(&format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        ));
    }

    /// A point, which tells its name to who points at it.
    pub(super) fn dot(&mut self, (x, y): (f64, f64), radius: f64, class: &str, name: &str) {
        let name = escaped(name);
        self.add(&format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" class=\"{class}\"><title>{name}</title></circle>"
        ));
    }

    /// A line through points.
    pub(super) fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let points = points.join(" ");
        self.add(&format!(
            "<polyline points=\"{points}\" class=\"{class}\"/>"
        ));
    }

    fn add(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    pub(super) fn finish(self) -> String {
        let Self {
            width,
            height,
            title,
            body,
        } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"back\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n"
        )
    }
}

/// About how wide a text is.
#[expect(clippy::cast_precision_loss, reason = "labels are short")]
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.6
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_shapes_are_there() {
        let mut svg = Svg::new(100.0, 50.0, "a < b & c");
        svg.rect((1.0, 2.0), (3.0, 4.0), "c0");
        svg.dot((1.0, 1.0), 3.0, "c1", "\"x\"");
        let text = svg.finish();
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert!(text.contains("a &lt; b &amp; c") && text.contains("&quot;x&quot;"));
        assert!(text.contains("prefers-color-scheme: dark"));
    }
}
