//! Writing what a predictor leaves: partitions of folded residuals, each with its own Rice parameter.

use super::bits::BitWriter;

/// The largest parameters that the two ways of writing them have room for; one more is the escape.
const PARAM_NARROW_MAX: u32 = 14;
const PARAM_MAX: u32 = 30;

/// How a residual is divided and written.
#[derive(Clone, Debug, Default)]
pub(super) struct RicePlan {
    partition_log2: u32,
    params: Vec<u32>,
    /// Estimated size, that of the plan itself included.
    pub(super) bits: u64,
}

impl RicePlan {
    /// Chooses for the residual of a predictor of order `order`, in at most 2^`partition_log2_max` partitions.
    pub(super) fn choose(residual: &[i32], order: usize, partition_log2_max: u32) -> Self {
        let count = residual.len() + order;
        let mut log2 = partition_log2_max.min(count.trailing_zeros());
        while log2 > 0 && count >> log2 <= order {
            log2 -= 1;
        }
        let mut sums = partition_sums(residual, order, count >> log2);
        let mut best = Self::for_sums(&sums, order, count, log2);
        while log2 > 0 {
            log2 -= 1;
            sums = sums.chunks(2).map(|pair| pair.iter().sum()).collect();
            let plan = Self::for_sums(&sums, order, count, log2);
            if plan.bits < best.bits {
                best = plan;
            }
        }
        best
    }

    fn for_sums(sums: &[u64], order: usize, count: usize, partition_log2: u32) -> Self {
        let partition_len = count >> partition_log2;
        let mut plan = Self {
            partition_log2,
            params: Vec::with_capacity(sums.len()),
            bits: 2 + 4,
        };
        for (index, sum) in sums.iter().enumerate() {
            let len = partition_len - if index == 0 { order } else { 0 };
            let (bits, param) = best_param(*sum, len as u64);
            plan.params.push(param);
            plan.bits += bits;
        }
        plan.bits += u64::from(plan.param_bits()) * sums.len() as u64;
        plan
    }

    fn param_bits(&self) -> u32 {
        let wide = self.params.iter().any(|param| *param > PARAM_NARROW_MAX);
        if wide { 5 } else { 4 }
    }

    pub(super) fn write(&self, residual: &[i32], order: usize, bits: &mut BitWriter<'_>) {
        let param_bits = self.param_bits();
        let partition_len = (residual.len() + order) >> self.partition_log2;
        bits.write(u64::from(param_bits) - 4, 2);
        bits.write(u64::from(self.partition_log2), 4);
        let mut rest = residual;
        for (index, param) in self.params.iter().enumerate() {
            let len = partition_len - if index == 0 { order } else { 0 };
            let (partition, after) = rest.split_at(len);
            rest = after;
            bits.write(u64::from(*param), param_bits);
            for residual in partition {
                let folded = fold(*residual);
                bits.write_unary(folded >> param);
                bits.write(u64::from(folded & !(u32::MAX << param)), *param);
            }
        }
    }
}

/// Returns the sums of folded residuals of each partition.
fn partition_sums(residual: &[i32], order: usize, partition_len: usize) -> Vec<u64> {
    let (first, rest) = residual.split_at(partition_len - order);
    let sum = |partition: &[i32]| partition.iter().map(|r| u64::from(fold(*r))).sum();
    let mut sums = vec![sum(first)];
    sums.extend(rest.chunks(partition_len).map(sum));
    sums
}

/// Returns the parameter for `count` values of the given sum, and the bits that they take about.
fn best_param(sum: u64, count: u64) -> (u64, u32) {
    let cost = |param: u32| {
        // Low bits are uniform, so that dropping them takes half of their range from each value.
        let dropped = count * ((1 << param) - 1) / 2;
        count * (u64::from(param) + 1) + (sum.saturating_sub(dropped) >> param)
    };
    let guess = (sum / count.max(1))
        .checked_ilog2()
        .unwrap_or(0)
        .min(PARAM_MAX);
    (guess.saturating_sub(1)..=guess)
        .map(|param| (cost(param), param))
        .min()
        .unwrap_or_default()
}

/// Turns 0, -1, 1, -2, ... into 0, 1, 2, 3, ...
fn fold(residual: i32) -> u32 {
    ((residual << 1) ^ (residual >> 31)).cast_unsigned()
}
