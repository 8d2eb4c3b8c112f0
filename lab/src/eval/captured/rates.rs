//! The rate that Chromium gives a VP9 layer of a size.

use crate::eval::frames::Size;

/// Luma samples of a layer and its target rate in kbit/s, from Chromium's table for VP9 layers (`simulcast.cc`).
const RATES: [(f64, f64); 6] = [
    (240.0 * 135.0, 101.0),
    (320.0 * 180.0, 142.0),
    (480.0 * 270.0, 257.0),
    (640.0 * 360.0, 420.0),
    (960.0 * 540.0, 879.0),
    (1280.0 * 720.0, 1524.0),
];

/// The rate of a layer in kbit/s, between the table's sizes in proportion.
pub(crate) fn layer_kbps(size: Size) -> u32 {
    let area = size.area() as f64;
    let after = RATES.iter().position(|&(at, _)| at >= area).unwrap_or(RATES.len() - 1).max(1);
    let ((a0, r0), (a1, r1)) = (RATES[after - 1], RATES[after]);
    let share = ((area - a0) / (a1 - a0)).max(0.0);
    (r0 + share * (r1 - r0)).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_table_have_its_rates_and_others_lie_between() {
        let rate = |width, height| layer_kbps(Size { width, height });
        assert_eq!((rate(640, 360), rate(1280, 720), rate(100, 60)), (420, 1524, 101));
        assert!((421..879).contains(&rate(720, 404)));
        assert!(rate(1920, 1080) > 2500);
    }
}
