//! Linear prediction: finding coefficients that predict each sample from those before it.
//!
//! Only additions, multiplications, divisions and square roots are used on floating point numbers, which are exact to
//! the last bit on every machine, and logarithms where a tiny difference cannot matter but in a tie.

/// The most samples that a predictor here looks back; the format would allow 32.
pub(super) const ORDER_MAX: usize = 12;

/// Coefficients as a stream holds them.
#[derive(Clone, Debug)]
pub(super) struct Predictor {
    /// That of the newest sample first.
    pub(super) coefficients: Vec<i32>,
    pub(super) precision: u32,
    pub(super) shift: u32,
}

/// The result of one analysis: real coefficients for each order and how well they do.
pub(super) struct Analysis {
    /// By order, less 1.
    by_order: Vec<(Vec<f64>, f64)>,
    sample_count: usize,
}

impl Analysis {
    /// Analyses `samples` as seen through `window`, which is as long.
    ///
    /// Returns nothing when there is nothing to predict from.
    pub(super) fn new(samples: &[i32], window: &[f64], order_max: usize) -> Option<Self> {
        let seen: Vec<f64> = samples
            .iter()
            .zip(window)
            .map(|(sample, weight)| f64::from(*sample) * weight)
            .collect();
        let order_max = order_max
            .min(ORDER_MAX)
            .min(samples.len().saturating_sub(1));
        let lags: Vec<f64> = (0..=order_max)
            .map(|lag| dot(&seen[lag..], &seen[..seen.len() - lag]))
            .collect();
        let by_order = levinson(&lags);
        (!by_order.is_empty()).then_some(Self {
            by_order,
            sample_count: samples.len(),
        })
    }

    pub(super) fn order_max(&self) -> usize {
        self.by_order.len()
    }

    /// Returns the order for which residual and coefficients together should be smallest.
    pub(super) fn best_order(&self, sample_bits: u32, precision: u32) -> usize {
        let count = self.sample_count as f64;
        let cost = |order: usize, error: f64| {
            // The bits of a residual with the given variance, were it Laplacian.
            let bits = (0.5 * (0.5 * error / count).log2()).max(0.0);
            bits * (count - order as f64) + f64::from(sample_bits + precision) * order as f64
        };
        let mut best = (f64::INFINITY, 1);
        for (index, (_, error)) in self.by_order.iter().enumerate() {
            let cost = cost(index + 1, *error);
            if cost < best.0 {
                best = (cost, index + 1);
            }
        }
        best.1
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "clamped to fewer bits than 32"
    )]
    /// Rounds the coefficients of `order` to `precision` bits; `None` when they cannot be written so.
    pub(super) fn predictor(&self, order: usize, precision: u32) -> Option<Predictor> {
        /// The shift is a number of five bits with a sign that must not be used.
        const SHIFT_MAX: i32 = 15;
        let (coefficients, _) = self.by_order.get(order - 1)?;
        let largest = coefficients.iter().fold(0.0_f64, |max, c| max.max(c.abs()));
        if !(largest.is_finite() && largest > 0.0) {
            return None;
        }
        // One bit for the sign and as many as the largest has before the point.
        let whole_bits = exponent(largest) + 1;
        let shift = (precision.cast_signed() - 1 - whole_bits).min(SHIFT_MAX);
        if shift < 0 {
            return None;
        }
        let limit = 1_i32 << (precision - 1);
        let scale = f64::from(1_u32 << shift);
        let mut carried = 0.0;
        let rounded = coefficients.iter().map(|coefficient| {
            // What rounding takes from one coefficient the next one gets.
            let exact = coefficient * scale + carried;
            let rounded = exact.round().clamp(f64::from(-limit), f64::from(limit - 1));
            carried = exact - rounded;
            rounded as i32
        });
        Some(Predictor {
            coefficients: rounded.collect(),
            precision,
            shift: shift.cast_unsigned(),
        })
    }
}

impl Predictor {
    pub(super) fn order(&self) -> usize {
        self.coefficients.len()
    }

    /// Replaces `residual` by what the prediction misses; returns whether that has 32 bits everywhere.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what does not fit is told, and then the residual is not used"
    )]
    pub(super) fn residual(&self, samples: &[i32], residual: &mut Vec<i32>) -> bool {
        let mut oldest_first = [0; ORDER_MAX];
        let order = self.order();
        for (slot, coefficient) in oldest_first.iter_mut().zip(self.coefficients.iter().rev()) {
            *slot = i64::from(*coefficient);
        }
        let oldest_first = &oldest_first[..order];
        residual.clear();
        let mut fits = true;
        let mut push = |sum: i64, sample: i32| {
            let missed = i64::from(sample) - (sum >> self.shift);
            // The least number is left out, as RFC 9639 section 9.2.7.3 wants.
            fits &= missed.unsigned_abs() < 1 << 31;
            missed as i32
        };
        // A loop for each order, so that the compiler unrolls the sum.
        macro_rules! of_order {
            ($($order:literal)*) => {
                match order {
                    $($order => extend_residual::<$order>(samples, oldest_first, &mut push, residual),)*
                    _ => unreachable!("no predictor has more coefficients than ORDER_MAX"),
                }
            };
        }
        of_order!(1 2 3 4 5 6 7 8 9 10 11 12);
        fits
    }
}

/// Appends what `missed` makes of each weighted sum of `ORDER` samples and the sample after them.
fn extend_residual<const ORDER: usize>(
    samples: &[i32],
    oldest_first: &[i64],
    missed: &mut impl FnMut(i64, i32) -> i32,
    residual: &mut Vec<i32>,
) {
    let Some(coefficients) = oldest_first.first_chunk::<ORDER>() else {
        return;
    };
    let after = samples.get(ORDER..).unwrap_or_default();
    residual.extend(samples.windows(ORDER).zip(after).map(|(recent, sample)| {
        let terms = recent.iter().zip(coefficients);
        missed(terms.map(|(s, c)| i64::from(*s) * c).sum(), *sample)
    }));
}

/// Makes the windows through which a block of `len` samples is looked at.
///
/// The first one shows all of it and fades at both ends; for each number of parts from 2 to `parts_max`,
/// others show one part each, which finds better coefficients where the sound changes within the block.
pub(super) fn windows(len: usize, parts_max: usize) -> Vec<Vec<f64>> {
    let mut windows = vec![tukey(len, 0..len, 4)];
    for parts in 2..=parts_max {
        for part in 0..parts {
            let range = len * part / parts..len * (part + 1) / parts;
            windows.push(tukey(len, range, 4 * parts));
        }
    }
    windows
}

/// A window that is 0 outside `range` and fades over one part in `fade_parts` of it at each end.
fn tukey(len: usize, range: std::ops::Range<usize>, fade_parts: usize) -> Vec<f64> {
    let mut window = vec![0.0; len];
    let shown = range.len();
    let fade_len = (shown / fade_parts).max(1);
    for (index, weight) in window[range].iter_mut().enumerate() {
        let from_edge = index.min(shown - 1 - index);
        *weight = if from_edge < fade_len {
            let place = (from_edge + 1) as f64 / (fade_len + 1) as f64;
            0.5 - 0.5 * cosine(std::f64::consts::PI * place)
        } else {
            1.0
        };
    }
    window
}

/// The cosine of an angle from 0 to pi, by its series: that of the standard library differs between machines.
fn cosine(angle: f64) -> f64 {
    let square = angle * angle;
    let (mut term, mut sum) = (1.0, 1.0);
    for step in 1..=12 {
        let n = f64::from(2 * step);
        term *= -square / (n * (n - 1.0));
        sum += term;
    }
    sum
}

/// Multiplies element by element and adds up, in eight sums, so that the compiler may use wide registers.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_chunks, a_rest) = a.as_chunks::<8>();
    let (b_chunks, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// Solves for the coefficients of each order in turn (Levinson and Durbin); returns them with the error left.
fn levinson(lags: &[f64]) -> Vec<(Vec<f64>, f64)> {
    let mut solutions = Vec::new();
    let mut coefficients: Vec<f64> = Vec::new();
    let Some(mut error) = lags.first().copied() else {
        return solutions;
    };
    for order in 1..lags.len() {
        // Also ends for numbers that are none.
        if !(error.is_finite() && error > 0.0) {
            break;
        }
        let known: f64 = coefficients
            .iter()
            .zip(lags[1..order].iter().rev())
            .map(|(coefficient, lag)| coefficient * lag)
            .sum();
        let reflection = (lags[order] - known) / error;
        let mirrored: Vec<f64> = coefficients.iter().rev().copied().collect();
        for (coefficient, mirror) in coefficients.iter_mut().zip(mirrored) {
            *coefficient -= reflection * mirror;
        }
        coefficients.push(reflection);
        error *= 1.0 - reflection * reflection;
        solutions.push((coefficients.clone(), error.max(0.0)));
    }
    solutions
}

/// Returns the largest `e` with 2^e <= `value`, a positive normal number.
fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7FF) as i32 - 1023
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosine_is_one() {
        for step in 0..=100 {
            let angle = std::f64::consts::PI * f64::from(step) / 100.0;
            assert!((cosine(angle) - angle.cos()).abs() < 1e-12);
        }
    }

    #[test]
    fn finds_a_recurrence() {
        // A sine obeys s[n] = 2 cos(w) s[n - 1] - s[n - 2].
        #[expect(clippy::cast_possible_truncation, reason = "within 10,000")]
        let sine = |n| (10_000.0 * (f64::from(n) * 0.05).sin()).round() as i32;
        let samples: Vec<i32> = (0..4096).map(sine).collect();
        let window = windows(samples.len(), 1).remove(0);
        let analysis = Analysis::new(&samples, &window, 8).unwrap_or_else(|| unreachable!());
        let predictor = analysis.predictor(2, 14).unwrap_or_else(|| unreachable!());
        let mut residual = Vec::new();
        assert!(predictor.residual(&samples, &mut residual));
        let largest = residual.iter().map(|r| r.abs()).max();
        assert!(largest.is_some_and(|largest| largest < 40), "{largest:?}");
    }

    #[test]
    fn silence_has_no_predictor() {
        assert!(Analysis::new(&[0; 100], &windows(100, 1)[0], 8).is_none());
    }
}
