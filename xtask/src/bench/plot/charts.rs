//! Three kinds of plots: bars, points with lines, and rows of percentiles.

use super::scale::{Scale, shown};
use super::svg::{Anchor, COLOURS, Svg, text_width};

const WIDTH: f64 = 760.0;
const ROW: f64 = 22.0;
/// Above the first row: the title, and what the figures are.
const HEAD: f64 = 62.0;
const RADIUS: f64 = 4.0;

/// A bar.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    /// The figure at its end.
    pub(super) shown: String,
    /// Which colour.
    pub(super) colour: usize,
    /// Figures that were not measured here.
    pub(super) is_faint: bool,
}

/// Bars below each other, with the unit in the second line.
pub(super) fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let rows = f64::from(u32::try_from(bars.len()).unwrap_or(0));
    let mut svg = Svg::new(WIDTH, HEAD + rows * ROW + 16.0, title);
    svg.text(16.0, 46.0, "soft", Anchor::Start, unit);
    let left = 24.0 + widest(bars.iter().map(|bar| bar.label.as_str()));
    let right = WIDTH - 24.0 - widest(bars.iter().map(|bar| bar.shown.as_str()));
    let scale = Scale::linear(bars.iter().map(|bar| bar.value), (left, right));
    let mut y = HEAD;
    for bar in bars {
        let end = scale.at(bar.value);
        let faint = if bar.is_faint { " faint" } else { "" };
        svg.text(left - 8.0, y + 15.0, "", Anchor::End, &bar.label);
        let class = format!("c{}{faint}", bar.colour % COLOURS);
        svg.rect((left, y + 3.0), ((end - left).max(1.0), ROW - 6.0), &class);
        svg.text(end + 6.0, y + 15.0, "soft", Anchor::Start, &bar.shown);
        y += ROW;
    }
    svg.finish()
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(text_width).fold(0.0, f64::max)
}

/// Points of one kind, and whether a line joins them.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) colour: usize,
    /// Place and name.
    pub(super) points: Vec<(f64, f64, String)>,
    pub(super) is_joined: bool,
}

/// What the axes show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axes<'a> {
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    /// Whether both show ratios as distances; else both begin at zero.
    pub(super) is_logarithmic: bool,
}

/// Points in a plane.
pub(super) fn plane(title: &str, axes: Axes<'_>, series: &[Series]) -> String {
    let height = 470.0;
    let (left, right, top, bottom) = (76.0, WIDTH - 24.0, 82.0, height - 50.0);
    let mut svg = Svg::new(WIDTH, height, title);
    let points = || series.iter().flat_map(|series| &series.points);
    let make = if axes.is_logarithmic {
        |values: Vec<f64>, ends| Scale::logarithmic(values.into_iter(), ends)
    } else {
        |values: Vec<f64>, ends| Scale::linear(values.into_iter(), ends)
    };
    let x = make(points().map(|point| point.0).collect(), (left, right));
    let y = make(points().map(|point| point.1).collect(), (bottom, top));
    for tick in x.ticks() {
        let at = x.at(tick);
        svg.line((at, top), (at, bottom), "grid");
        svg.text(at, bottom + 18.0, "soft", Anchor::Middle, &shown(tick));
    }
    for tick in y.ticks() {
        let at = y.at(tick);
        svg.line((left, at), (right, at), "grid");
        svg.text(left - 8.0, at + 4.0, "soft", Anchor::End, &shown(tick));
    }
    let middle = f64::midpoint(left, right);
    svg.text(middle, height - 12.0, "soft", Anchor::Middle, axes.x);
    svg.text(16.0, 48.0, "soft", Anchor::Start, axes.y);
    legend(&mut svg, series, (left, 66.0));
    let mut taken: Vec<[f64; 4]> = points().map(|p| around((x.at(p.0), y.at(p.1)))).collect();
    for one in series {
        let colour = one.colour % COLOURS;
        let places: Vec<_> = one.points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
        if one.is_joined {
            svg.polyline(&places, &format!("line s{colour}"));
        }
        for (place, (_, _, name)) in places.into_iter().zip(&one.points) {
            svg.dot(
                place,
                RADIUS,
                &format!("c{colour}"),
                &format!("{} {name}", one.name),
            );
            label(&mut svg, place, name, (left, right), &mut taken);
        }
    }
    svg.finish()
}

fn legend(svg: &mut Svg, series: &[Series], (mut x, y): (f64, f64)) {
    for one in series {
        svg.dot(
            (x, y),
            RADIUS,
            &format!("c{}", one.colour % COLOURS),
            &one.name,
        );
        svg.text(x + 8.0, y + 4.0, "", Anchor::Start, &one.name);
        x += 28.0 + text_width(&one.name);
    }
}

/// The box of a point.
fn around((x, y): (f64, f64)) -> [f64; 4] {
    [x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS]
}

/// Writes a name beside its point where nothing else is, or not at all: pointing at the point tells it.
fn label(
    svg: &mut Svg,
    (x, y): (f64, f64),
    name: &str,
    (left, right): (f64, f64),
    taken: &mut Vec<[f64; 4]>,
) {
    let width = text_width(name);
    let tries = [
        (x + 7.0, y + 4.0),
        (x - 7.0 - width, y + 4.0),
        (x - width / 2.0, y - 8.0),
        (x - width / 2.0, y + 17.0),
        (x + 5.0, y - 7.0),
        (x + 5.0, y + 15.0),
        (x - 5.0 - width, y - 7.0),
        (x - 5.0 - width, y + 15.0),
    ];
    for (at, base) in tries {
        let own = [at, base - 10.0, at + width, base + 2.0];
        let is_free = !taken.iter().any(|other| overlap(&own, other));
        if is_free && at >= left && at + width <= right + 20.0 {
            svg.text(at, base, "", Anchor::Start, name);
            taken.push(own);
            return;
        }
    }
}

fn overlap(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// A row of percentiles: median first, the rarest last.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    pub(super) label: String,
    pub(super) values: Vec<(String, f64)>,
    pub(super) colour: usize,
}

/// Percentiles of many systems, each a row, over one axis of ratios.
pub(super) fn spreads(title: &str, unit: &str, rows: &[Spread]) -> String {
    let count = f64::from(u32::try_from(rows.len()).unwrap_or(0));
    let bottom = HEAD + count * ROW;
    let mut svg = Svg::new(WIDTH, bottom + 34.0, title);
    svg.text(16.0, 46.0, "soft", Anchor::Start, unit);
    let left = 32.0 + widest(rows.iter().map(|row| row.label.as_str()));
    let values = rows.iter().flat_map(|row| &row.values).map(|value| value.1);
    let scale = Scale::logarithmic(values, (left, WIDTH - 40.0));
    for tick in scale.ticks() {
        let at = scale.at(tick);
        svg.line((at, HEAD), (at, bottom), "grid");
        svg.text(at, bottom + 18.0, "soft", Anchor::Middle, &shown(tick));
    }
    let mut y = HEAD + ROW / 2.0;
    for row in rows {
        let colour = row.colour % COLOURS;
        svg.text(left - 12.0, y + 4.0, "", Anchor::End, &row.label);
        let places: Vec<_> = row
            .values
            .iter()
            .map(|value| (scale.at(value.1), y))
            .collect();
        svg.polyline(&places, &format!("line s{colour}"));
        for (index, (place, (name, value))) in places.iter().zip(&row.values).enumerate() {
            // The median stands out.
            let (radius, faint) = if index == 0 {
                (RADIUS + 1.0, "")
            } else {
                (RADIUS, " faint")
            };
            let name = format!("{} {name}: {}", row.label, shown(*value));
            svg.dot(*place, radius, &format!("c{colour}{faint}"), &name);
        }
        y += ROW;
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_cover_each_other() {
        let mut svg = Svg::new(100.0, 100.0, "");
        let mut taken = Vec::new();
        for _ in 0..20 {
            label(&mut svg, (50.0, 50.0), "name", (0.0, 100.0), &mut taken);
        }
        for (index, one) in taken.iter().enumerate() {
            assert!(!taken[..index].iter().any(|other| overlap(one, other)));
        }
        assert!((2..20).contains(&taken.len()));
    }

    #[test]
    fn a_plot_of_each_kind() {
        let bar = Bar {
            label: "durin".to_owned(),
            value: 3.0,
            shown: "3 MB".to_owned(),
            colour: 0,
            is_faint: false,
        };
        assert!(bars("Size", "MB", &[bar]).contains("3 MB"));
        let series = Series {
            name: "durin".to_owned(),
            colour: 0,
            points: vec![(1.0, 2.0, "-l1".to_owned()), (3.0, 1.0, "-l9".to_owned())],
            is_joined: true,
        };
        let axes = Axes {
            x: "CPU",
            y: "bytes",
            is_logarithmic: true,
        };
        let text = plane("All", axes, &[series]);
        assert!(text.contains("-l9") && text.contains("polyline"));
        let spread = Spread {
            label: "durin".to_owned(),
            values: vec![("p50".to_owned(), 3.0), ("p99".to_owned(), 300.0)],
            colour: 0,
        };
        assert!(spreads("Latency", "us", &[spread]).contains("p99: 300"));
    }
}
