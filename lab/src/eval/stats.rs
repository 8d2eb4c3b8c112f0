//! Statistics of a series: mean, percentile.

/// The percentile of the worst frames that reports give beside the mean.
pub(crate) const LOW_PERCENTILE: f64 = 5.0;

/// The mean of the values; `None` where there are none.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// The value that `percent` of the values lie below, interpolated between neighbours in rank (as numpy does by
/// default). `None` where there are no values.
pub(crate) fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let rank = percent.clamp(0.0, 100.0) / 100.0 * last as f64;
    let below = rank.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * rank.fract())
}

/// The smallest value with its index; `None` where there are none.
pub(crate) fn least(values: impl IntoIterator<Item = f64>) -> Option<(usize, f64)> {
    values.into_iter().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_numpy() {
        let values = [40.0, 10.0, 30.0, 20.0];
        let at = |p| percentile(&values, p).unwrap();
        assert!((at(0.0) - 10.0).abs() < 1e-12 && (at(100.0) - 40.0).abs() < 1e-12);
        assert!((at(50.0) - 25.0).abs() < 1e-12);
        // numpy.percentile([40, 10, 30, 20], 5) is 11.5.
        assert!((at(5.0) - 11.5).abs() < 1e-12);
        assert_eq!(percentile(&[7.0], 5.0), Some(7.0));
        assert_eq!(percentile(&[], 5.0), None);
    }

    #[test]
    fn nothing_has_neither_mean_nor_least() {
        assert_eq!((mean([]), least([])), (None, None));
        assert_eq!(mean([1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(least([2.0, -1.0, 0.5]), Some((1, -1.0)));
    }
}
