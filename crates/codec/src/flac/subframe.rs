//! One channel of one block: choosing the shortest way to write it, and writing it.

use super::bits::BitWriter;
use super::lpc::{Analysis, Predictor};
use super::rice::RicePlan;

/// How hard to search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// 0 leaves linear prediction out.
    pub(super) lpc_order_max: usize,
    pub(super) partition_log2_max: u32,
    /// Whether every order is tried instead of the one that looks best.
    pub(super) exhaustive: bool,
}

/// The samples of a channel in a form that can be written.
#[derive(Debug)]
pub(super) struct Subframe {
    kind: Kind,
    /// Low bits that are 0 in every sample and left out.
    wasted: u32,
    /// Bits of a sample without those.
    sample_bits: u32,
    /// The samples without those: all where nothing is predicted, otherwise those that the predictor starts from.
    plain: Vec<i32>,
    /// The estimated size.
    pub(super) bits: u64,
}

#[derive(Debug)]
enum Kind {
    Constant,
    Verbatim,
    Fixed {
        residual: Vec<i32>,
        rice: RicePlan,
    },
    Lpc {
        predictor: Predictor,
        residual: Vec<i32>,
        rice: RicePlan,
    },
}

const HEADER_BITS: u64 = 8;
const FIXED_ORDER_MAX: usize = 4;

impl Subframe {
    /// Finds the shortest form of `samples`, which are not empty and have `sample_bits` bits.
    pub(super) fn choose(
        samples: &[i32],
        sample_bits: u32,
        windows: &[Vec<f64>],
        effort: Effort,
    ) -> Self {
        let used = samples.iter().fold(0, |used, sample| used | sample);
        let first = samples.first().copied().unwrap_or(0);
        if samples.iter().all(|sample| *sample == first) {
            return Self {
                kind: Kind::Constant,
                wasted: 0,
                sample_bits,
                plain: vec![first],
                bits: HEADER_BITS + u64::from(sample_bits),
            };
        }
        let wasted = used.trailing_zeros();
        let shifted: Vec<i32> = samples.iter().map(|sample| sample >> wasted).collect();
        let mut search = Search {
            sample_bits: sample_bits - wasted,
            effort,
            best: Self::verbatim(&shifted, sample_bits - wasted, wasted),
            samples: shifted,
        };
        search.try_fixed();
        if effort.lpc_order_max > 0 {
            for window in windows {
                search.try_lpc(window);
            }
        }
        search.best
    }

    fn verbatim(samples: &[i32], sample_bits: u32, wasted: u32) -> Self {
        Self {
            kind: Kind::Verbatim,
            wasted,
            sample_bits,
            plain: samples.to_vec(),
            bits: HEADER_BITS + u64::from(wasted) + u64::from(sample_bits) * samples.len() as u64,
        }
    }

    pub(super) fn write(&self, bits: &mut BitWriter<'_>) {
        let order = self.plain.len() as u64;
        let code = match &self.kind {
            Kind::Constant => 0,
            Kind::Verbatim => 1,
            Kind::Fixed { .. } => 8 + order,
            Kind::Lpc { .. } => 31 + order,
        };
        bits.write(code, 7);
        if self.wasted == 0 {
            bits.write(0, 1);
        } else {
            bits.write(1, 1);
            bits.write_unary(self.wasted - 1);
        }
        for sample in &self.plain {
            bits.write_signed(i64::from(*sample), self.sample_bits);
        }
        match &self.kind {
            Kind::Constant | Kind::Verbatim => {}
            Kind::Fixed { residual, rice } => rice.write(residual, self.plain.len(), bits),
            Kind::Lpc {
                predictor,
                residual,
                rice,
            } => {
                bits.write(u64::from(predictor.precision) - 1, 4);
                bits.write(u64::from(predictor.shift), 5);
                for coefficient in &predictor.coefficients {
                    bits.write_signed(i64::from(*coefficient), predictor.precision);
                }
                rice.write(residual, self.plain.len(), bits);
            }
        }
    }
}

/// Trying one form after the other.
struct Search {
    samples: Vec<i32>,
    sample_bits: u32,
    effort: Effort,
    best: Subframe,
}

impl Search {
    fn try_fixed(&mut self) {
        let order_max = FIXED_ORDER_MAX.min(self.samples.len() - 1);
        if self.effort.exhaustive {
            (0..=order_max).for_each(|order| self.try_fixed_order(order));
        } else {
            let errors = fixed_errors(&self.samples);
            let best = (0..=order_max).min_by_key(|order| errors[*order]);
            self.try_fixed_order(best.unwrap_or(0));
        }
    }

    fn try_fixed_order(&mut self, order: usize) {
        let mut residual = Vec::new();
        if !fixed_residual(&self.samples, order, &mut residual) {
            return;
        }
        let rice = RicePlan::choose(&residual, order, self.effort.partition_log2_max);
        let bits = rice.bits;
        self.keep_shorter(order, bits, Kind::Fixed { residual, rice });
    }

    fn try_lpc(&mut self, window: &[f64]) {
        let order_max = self.effort.lpc_order_max;
        let Some(analysis) = Analysis::new(&self.samples, window, order_max) else {
            return;
        };
        let precision = precision(self.sample_bits, self.samples.len());
        if self.effort.exhaustive {
            for order in 1..=analysis.order_max() {
                self.try_predictor(analysis.predictor(order, precision));
            }
        } else {
            let order = analysis.best_order(self.sample_bits, precision);
            self.try_predictor(analysis.predictor(order, precision));
        }
    }

    fn try_predictor(&mut self, predictor: Option<Predictor>) {
        let Some(predictor) = predictor else { return };
        let order = predictor.order();
        let mut residual = Vec::new();
        if !predictor.residual(&self.samples, &mut residual) {
            return;
        }
        let rice = RicePlan::choose(&residual, order, self.effort.partition_log2_max);
        let bits = 4 + 5 + order as u64 * u64::from(predictor.precision) + rice.bits;
        self.keep_shorter(
            order,
            bits,
            Kind::Lpc {
                predictor,
                residual,
                rice,
            },
        );
    }

    /// Keeps a form whose predictor starts from `order` samples if it is the shortest so far.
    fn keep_shorter(&mut self, order: usize, bits: u64, kind: Kind) {
        let start_bits = order as u64 * u64::from(self.sample_bits);
        let bits = HEADER_BITS + u64::from(self.best.wasted) + start_bits + bits;
        if bits < self.best.bits {
            self.best = Subframe {
                kind,
                wasted: self.best.wasted,
                sample_bits: self.sample_bits,
                plain: self.samples[..order].to_vec(),
                bits,
            };
        }
    }
}

/// Bits of a coefficient: more where there are more samples to save on.
///
/// The steps are those that FLAC encoders have settled on for 16 bits; other widths scale them.
fn precision(sample_bits: u32, sample_count: usize) -> u32 {
    let for_16 = match sample_count {
        0..=192 => 7,
        193..=384 => 8,
        385..=576 => 9,
        577..=1152 => 10,
        1153..=2304 => 11,
        2305..=4608 => 12,
        _ => 13,
    };
    match sample_bits {
        0..16 => for_16.min(2 + sample_bits / 2).max(5),
        16 => for_16,
        _ => (for_16 + 2).min(15),
    }
}

/// Returns for each fixed order the sum of the absolute residuals.
fn fixed_errors(samples: &[i32]) -> [u64; FIXED_ORDER_MAX + 1] {
    let mut errors = [0_u64; FIXED_ORDER_MAX + 1];
    let mut before = [0_i64; FIXED_ORDER_MAX];
    for (index, sample) in samples.iter().enumerate() {
        // Each order's residual is the difference of the lower order's.
        let mut difference = i64::from(*sample);
        for (order, error) in errors.iter_mut().enumerate() {
            // The first samples, which higher orders store, would count against all orders.
            if index >= FIXED_ORDER_MAX {
                *error += difference.unsigned_abs();
            }
            if let Some(before) = before.get_mut(order) {
                let next = difference - *before;
                *before = difference;
                difference = next;
            }
        }
    }
    errors
}

/// Replaces `residual` by what the fixed predictor misses; returns whether that has 32 bits everywhere.
#[expect(
    clippy::cast_possible_truncation,
    reason = "what does not fit is told, and then the residual is not used"
)]
fn fixed_residual(samples: &[i32], order: usize, residual: &mut Vec<i32>) -> bool {
    let mut fits = true;
    let at = |index: usize| i64::from(samples[index]);
    residual.clear();
    residual.extend((order..samples.len()).map(|i| {
        let missed = match order {
            0 => at(i),
            1 => at(i) - at(i - 1),
            2 => at(i) - 2 * at(i - 1) + at(i - 2),
            3 => at(i) - 3 * at(i - 1) + 3 * at(i - 2) - at(i - 3),
            _ => at(i) - 4 * at(i - 1) + 6 * at(i - 2) - 4 * at(i - 3) + at(i - 4),
        };
        fits &= missed.unsigned_abs() < 1 << 31;
        missed as i32
    }));
    fits
}
