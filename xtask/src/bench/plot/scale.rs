//! Axes: where a value is on the paper, and at which values a line is drawn.

/// A part of the paper for values in a range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    /// Pixels of `from` and `to`.
    begin: f64,
    end: f64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Linear,
    Logarithmic,
}

impl Scale {
    /// A scale from nothing to the largest value.
    pub(super) fn linear(values: impl Iterator<Item = f64>, (begin, end): (f64, f64)) -> Self {
        let most = values.fold(0.0, f64::max);
        Self {
            from: 0.0,
            to: if most > 0.0 { most * 1.04 } else { 1.0 },
            begin,
            end,
            kind: Kind::Linear,
        }
    }

    /// A scale that shows ratios as distances; what is not above zero is shown at the least value.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>, (begin, end): (f64, f64)) -> Self {
        let (least, most) = values
            .filter(|value| *value > 0.0)
            .fold((f64::MAX, 0.0_f64), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        let (least, most) = if most > 0.0 {
            (least, most)
        } else {
            (1.0, 10.0)
        };
        Self {
            from: least / 1.25,
            to: most * 1.25,
            begin,
            end,
            kind: Kind::Logarithmic,
        }
    }

    /// Where a value is.
    pub(super) fn at(&self, value: f64) -> f64 {
        let part = match self.kind {
            Kind::Linear => (value - self.from) / (self.to - self.from),
            Kind::Logarithmic => {
                (value.max(self.from) / self.from).ln() / (self.to / self.from).ln()
            }
        };
        self.begin + part * (self.end - self.begin)
    }

    /// Round values in the range, few enough for labels.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Linear => {
                let step = round_up((self.to - self.from) / 6.0);
                let values = (0_u32..100).map(|index| f64::from(index) * step);
                values.take_while(|value| *value <= self.to).collect()
            }
            Kind::Logarithmic => {
                let is_wide = self.to / self.from > 200.0;
                let steps: &[f64] = if is_wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let decades = (-9_i32..15).map(|power| 10_f64.powi(power));
                let values = decades.flat_map(|decade| steps.iter().map(move |step| step * decade));
                values
                    .filter(|value| (self.from..=self.to).contains(value))
                    .collect()
            }
        }
    }
}

/// The next of 1, 2, 5, 10, 20 and so on.
fn round_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

/// A number for people: no more digits than it needs.
pub(super) fn shown(value: f64) -> String {
    if value >= 100.0 || value == 0.0 {
        format!("{value:.0}")
    } else if value >= 1.0 {
        let text = format!("{value:.1}");
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    } else {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_a_scale() {
        let scale = Scale::linear([5.0, 100.0].into_iter(), (10.0, 114.0));
        assert_eq!((scale.at(0.0), scale.at(100.0)), (10.0, 110.0));
        assert_eq!(scale.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let scale = Scale::logarithmic([1.0, 100.0, 0.0].into_iter(), (0.0, 1.0));
        assert!((scale.at(10.0) - 0.5).abs() < 1e-9);
        assert_eq!(scale.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert!(scale.at(0.0) >= 0.0);
        assert!(
            !Scale::logarithmic(std::iter::empty(), (0.0, 1.0))
                .ticks()
                .is_empty()
        );
    }

    #[test]
    fn numbers_are_short() {
        let check = |value, expect: &str| assert_eq!(shown(value), expect);
        check(0.0, "0");
        check(1234.5, "1234");
        check(2.0, "2");
        check(2.54, "2.5");
        check(0.05, "0.05");
    }
}
