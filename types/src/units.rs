//! Bitrates and picture sizes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bits in a kbit, as links and encoders count them: not 1024.
const BITS_PER_KBIT: f64 = 1000.0;

/// A bitrate, in whole bits a second. In messages it is a number in kbit/s, and the field's name says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bitrate(u64);

impl Bitrate {
    /// The bitrate of nothing: 0 bits a second.
    pub const ZERO: Bitrate = Bitrate(0);

    /// A bitrate of `bps` bits a second.
    pub const fn bps(bps: u64) -> Bitrate {
        Bitrate(bps)
    }

    /// A bitrate from kbit/s, to the nearest bit a second. A negative number or NaN gives [`Bitrate::ZERO`].
    pub const fn kbps(kbps: f64) -> Bitrate {
        // The cast saturates, and makes 0 of NaN.
        Bitrate((kbps * BITS_PER_KBIT + 0.5) as u64)
    }

    /// The bitrate in bits a second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The bitrate in kbit/s.
    pub const fn as_kbps(self) -> f64 {
        self.0 as f64 / BITS_PER_KBIT
    }

    /// This bitrate less another, or [`Bitrate::ZERO`] if the other is greater.
    #[must_use]
    pub const fn saturating_sub(self, less: Bitrate) -> Bitrate {
        Bitrate(self.0.saturating_sub(less.0))
    }

    /// The bitrate multiplied by a factor, rounded down to whole bits a second.
    #[must_use]
    pub const fn mul_f64(self, by: f64) -> Bitrate {
        Bitrate((self.0 as f64 * by) as u64)
    }
}

impl Add for Bitrate {
    type Output = Bitrate;

    fn add(self, more: Bitrate) -> Bitrate {
        Bitrate(self.0.saturating_add(more.0))
    }
}

impl AddAssign for Bitrate {
    fn add_assign(&mut self, more: Bitrate) {
        *self = *self + more;
    }
}

impl Sum for Bitrate {
    fn sum<I: Iterator<Item = Bitrate>>(rates: I) -> Bitrate {
        rates.fold(Bitrate::ZERO, Add::add)
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} kbit/s", self.as_kbps())
    }
}

impl Serialize for Bitrate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_kbps())
    }
}

impl<'de> Deserialize<'de> for Bitrate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bitrate, D::Error> {
        f64::deserialize(deserializer).map(Bitrate::kbps)
    }
}

/// Width and height of a picture, in pixels.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Size {
    /// Width in pixels.
    #[serde(deserialize_with = "side")]
    pub width: u16,
    /// Height in pixels.
    #[serde(deserialize_with = "side")]
    pub height: u16,
}

/// Reads a side, in pixels. A side beyond 65535 becomes 65535.
fn side<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    u32::deserialize(deserializer).map(|pixels| u16::try_from(pixels).unwrap_or(u16::MAX))
}

impl Size {
    /// A size of `width` × `height` pixels.
    pub const fn new(width: u16, height: u16) -> Size {
        Size { width, height }
    }

    /// The size of a picture in memory. Sides beyond 65535 become 65535, which nothing takes for a picture's.
    pub fn saturating(width: usize, height: usize) -> Size {
        let side = |pixels| u16::try_from(pixels).unwrap_or(u16::MAX);
        Size::new(side(width), side(height))
    }

    /// The number of pixels: width × height.
    pub const fn pixels(self) -> u32 {
        self.width as u32 * self.height as u32
    }

    /// Each side multiplied by `scale`; at most 65535.
    #[must_use]
    pub const fn scaled(self, scale: u16) -> Size {
        Size::new(self.width.saturating_mul(scale), self.height.saturating_mul(scale))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitrate_is_shown_in_whole_kbit() {
        assert_eq!(Bitrate::bps(148_200).to_string(), "148 kbit/s");
        assert_eq!(Size::new(640, 360).to_string(), "640x360");
        assert_eq!(Size::saturating(640, 70_000), Size::new(640, u16::MAX));
    }

    #[test]
    fn kbit_are_rounded_to_the_nearest_bit() {
        assert_eq!(Bitrate::kbps(410.5), Bitrate::bps(410_500));
        assert_eq!(Bitrate::kbps(0.000_6), Bitrate::bps(1));
        assert!((Bitrate::kbps(80.1).as_kbps() - 80.1).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_bitrate_is_none_at_all() {
        for kbps in [f64::NAN, -1.0, f64::NEG_INFINITY] {
            assert_eq!(Bitrate::kbps(kbps), Bitrate::ZERO);
        }
        assert_eq!(Bitrate::kbps(f64::INFINITY).as_bps(), u64::MAX);
    }

    #[test]
    fn sums_and_products_stay_within_range() {
        let (low, max) = (Bitrate::bps(40_000), Bitrate::bps(u64::MAX));
        assert_eq!([low, max].into_iter().sum::<Bitrate>(), max);
        assert_eq!(low.saturating_sub(max), Bitrate::ZERO);
        assert_eq!(low.mul_f64(0.95), Bitrate::bps(38_000));
        assert_eq!(Size::new(640, 40_000).scaled(2), Size::new(1280, u16::MAX));
        assert_eq!(Size::new(u16::MAX, u16::MAX).pixels(), 4_294_836_225);
    }
}
