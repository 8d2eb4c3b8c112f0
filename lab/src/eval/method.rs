//! The methods that `eval` compares, by name: ways to make HR pictures.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use windlass_hybrid::HybridConfig;
use windlass_network::Tier;

use super::captured::Source;
use super::scale::Scale;
use super::variants::{self, VARIANTS, Variant};

/// A way to make HR pictures from what the publisher sends: filters, networks, other streams, or the product.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Method {
    /// One full-size stream with the bits of low layer and anchors together.
    Direct,
    /// One full-size stream with twice the bits of the low layer.
    DirectTwice,
    /// The full layer at its own bitrate.
    Full,
    /// The low layer, enlarged by bicubic interpolation.
    Bicubic,
    /// The low layer, enlarged by Lanczos-3.
    Lanczos,
    /// The low layer, enlarged by Lanczos-3 and sharpened by an unsharp mask of 0.3.
    LanczosSharp,
    /// Super-resolution of every frame, as if it cost neither time nor bits.
    PerFrameSr,
    /// The product's reconstruction, with anchors on key frames and evenly spaced ones.
    KeyUniform,
    /// The product's reconstruction, with anchors where their true gain is greatest.
    Nemo,
    /// The papers' reconstruction, with the product's anchors, none of them late.
    NemoStyle,
    /// The product's reconstruction without any anchor.
    NoAnchors,
    /// The product's reconstruction, where every anchor is a whole frame.
    WholeFrames,
    /// The product's default: anchors of tiles, and reconstruction.
    Hybrid,
    /// A built-in network on every frame, and no anchor.
    Frames(Tier),
    /// Captured anchors of the full layer, and a built-in network on every frame.
    FramesFull(Tier),
    /// The product with captured anchors alone.
    Captured(Source),
    /// The product with captured and enhanced anchors together.
    Both(Source),
    /// The method `captured` or `both` without a source, which `--captured-from` names.
    Unresolved { both: bool },
    /// The product with other settings of the reconstruction.
    Variant(&'static Variant),
}

impl Method {
    /// All methods but the variants, in the order of the report.
    pub(crate) const ALL: [Method; 23] = [
        Method::Direct,
        Method::DirectTwice,
        Method::Full,
        Method::Bicubic,
        Method::Lanczos,
        Method::LanczosSharp,
        Method::PerFrameSr,
        Method::KeyUniform,
        Method::Nemo,
        Method::NemoStyle,
        Method::NoAnchors,
        Method::Frames(Tier::Xxs),
        Method::Frames(Tier::Xs),
        Method::WholeFrames,
        Method::Hybrid,
        Method::FramesFull(Tier::Xxs),
        Method::FramesFull(Tier::Xs),
        Method::Captured(Source::Full),
        Method::Captured(Source::Regions),
        Method::Captured(Source::Dds),
        Method::Both(Source::Full),
        Method::Both(Source::Regions),
        Method::Both(Source::Dds),
    ];

    /// The default methods: those whose time is in proportion to the clip's length.
    pub(crate) fn usual() -> Vec<Method> {
        let left_out = |method: &Method| *method == Method::Nemo || method.is_of_publisher();
        Method::ALL.into_iter().filter(|method| !left_out(method)).collect()
    }

    /// The default methods of a sweep: those whose curves are worth their time.
    pub(crate) fn swept() -> Vec<Method> {
        let left_out = [Method::Nemo, Method::LanczosSharp, Method::PerFrameSr];
        let all = Method::ALL.into_iter().filter(|method| !method.is_of_publisher());
        all.filter(|method| !left_out.contains(method)).collect()
    }

    /// Whether the publisher sends something besides the low layer for the method.
    fn is_of_publisher(self) -> bool {
        matches!(self, Method::DirectTwice | Method::Full) || self.captured().is_some()
    }

    /// The method with `source` as the source of its captured anchors, where it names none.
    #[must_use]
    pub(crate) fn resolve(self, source: Source) -> Method {
        match self {
            Method::Unresolved { both: true } => Method::Both(source),
            Method::Unresolved { both: false } => Method::Captured(source),
            resolved => resolved,
        }
    }

    /// The source of the captured anchors, if the method has some.
    pub(crate) fn captured(self) -> Option<Source> {
        match self {
            Method::Captured(source) | Method::Both(source) => Some(source),
            Method::FramesFull(_) => Some(Source::Full),
            _ => None,
        }
    }

    /// The network that runs on every frame, if there is one.
    pub(crate) fn frame_network(self) -> Option<Tier> {
        match self {
            Method::Frames(tier) | Method::FramesFull(tier) => Some(tier),
            _ => None,
        }
    }

    /// Whether the method has anchors, and so an anchor fraction and a coding.
    pub(crate) fn has_anchors(self) -> bool {
        matches!(
            self,
            Method::KeyUniform
                | Method::Nemo
                | Method::NemoStyle
                | Method::WholeFrames
                | Method::Hybrid
                | Method::FramesFull(_)
                | Method::Captured(_)
                | Method::Both(_)
                | Method::Variant(_)
        )
    }

    /// Whether some of the anchors are enhanced: made by the server's network.
    pub(crate) fn has_enhanced(self) -> bool {
        self.has_anchors() && !matches!(self, Method::Captured(_) | Method::FramesFull(_))
    }

    /// The settings of the hybrid decoder, where the method reconstructs with it.
    pub(crate) fn config(self, scale: Scale) -> Option<HybridConfig> {
        let default = HybridConfig { scale: scale.factor(), ..HybridConfig::default() };
        match self {
            Method::KeyUniform
            | Method::Nemo
            | Method::NoAnchors
            | Method::WholeFrames
            | Method::Captured(_)
            | Method::Both(_)
            | Method::Hybrid => Some(default),
            Method::Frames(tier) | Method::FramesFull(tier) => {
                Some(HybridConfig { network: Some(tier), ..default })
            }
            Method::Variant(variant) => Some((variant.config)(default)),
            _ => None,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Method::Direct => "direct",
            Method::DirectTwice => "direct@2",
            Method::Full => "f",
            Method::Bicubic => "bicubic",
            Method::Lanczos => "lanczos",
            Method::LanczosSharp => "lanczos@0.3",
            Method::PerFrameSr => "per-frame-sr",
            Method::KeyUniform => "key-uniform",
            Method::Nemo => "nemo",
            Method::NemoStyle => "nemo-style",
            Method::NoAnchors => "no-anchors",
            Method::Frames(Tier::Xxs) => "frames@xxs",
            Method::Frames(Tier::Xs) => "frames@xs",
            Method::FramesFull(Tier::Xxs) => "frames@xxs+f",
            Method::FramesFull(Tier::Xs) => "frames@xs+f",
            Method::WholeFrames => "whole-frames",
            Method::Hybrid => "hybrid",
            Method::Captured(Source::Full) => "captured@f",
            Method::Captured(Source::Regions) => "captured@regions",
            Method::Captured(Source::Dds) => "captured@dds",
            Method::Both(Source::Full) => "both@f",
            Method::Both(Source::Regions) => "both@regions",
            Method::Both(Source::Dds) => "both@dds",
            Method::Unresolved { both: false } => "captured",
            Method::Unresolved { both: true } => "both",
            Method::Variant(variant) => variant.name,
        }
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Method) -> bool {
        let variant = |method: &Method| matches!(method, Method::Variant(_));
        variant(self) == variant(other) && self.label() == other.label()
    }
}

impl Eq for Method {}

/// The name of the method in reports and on the command line.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Variant(variant) => write!(f, "hybrid@{}", variant.name),
            other => f.pad(other.label()),
        }
    }
}

impl FromStr for Method {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Method> {
        if let Some(name) = text.strip_prefix("hybrid@") {
            let Some(variant) = variants::by_name(name) else {
                let told = |variant: &Variant| format!("{} ({})", variant.name, variant.about);
                let names: Vec<String> = VARIANTS.iter().map(told).collect();
                bail!("there is no reconstruction {name:?}; there are: {}", names.join(", "));
            };
            return Ok(Method::Variant(variant));
        }
        let open = [false, true].map(|both| Method::Unresolved { both });
        let found = Method::ALL.into_iter().chain(open).find(|method| method.label() == text);
        let Some(method) = found else {
            let names = Method::ALL.map(Method::label).join(", ");
            bail!("there is no method {text:?}; there are: {names}, hybrid@NAME");
        };
        Ok(method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_names_are_those_of_the_report() {
        let variants = VARIANTS.iter().map(Method::Variant);
        for method in Method::ALL.into_iter().chain(variants) {
            assert_eq!(method.to_string().parse::<Method>().unwrap(), method);
        }
        assert_eq!("hybrid@no-prior".parse::<Method>().unwrap().to_string(), "hybrid@no-prior");
    }

    #[test]
    fn unknown_names_are_answered_with_those_there_are() {
        let error = |text: &str| text.parse::<Method>().unwrap_err().to_string();
        assert!(error("cubic").contains("bicubic"));
        assert!(error("hybrid@x").contains("no-prior"));
    }

    #[test]
    fn methods_with_anchors_are_those_that_use_some() {
        let with: Vec<String> =
            Method::ALL.iter().filter(|m| m.has_anchors()).map(Method::to_string).collect();
        let plain = with.iter().take_while(|name| !name.contains('@')).collect::<Vec<_>>();
        assert_eq!(plain, ["key-uniform", "nemo", "nemo-style", "whole-frames", "hybrid"]);
        assert!(!Method::Captured(Source::Regions).has_enhanced());
        assert!(Method::Both(Source::Regions).has_enhanced());
    }
}
