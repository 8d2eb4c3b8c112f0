//! The networks' structure, written once: an engine's graph is built from it, and it can be run step by step.
//!
//! Source: the order of convolutions, ReLU and skips is that of [`Architecture`].

use windlass_sr::{Architecture, Kind};

/// Builds the steps of a network into a graph, or runs them.
pub(crate) trait Steps {
    /// The value between two steps.
    type Value: Clone;
    /// Why a step failed.
    type Error;

    /// Does convolution `n`, with ReLU behind it if `relu` is set.
    fn conv(&mut self, n: usize, x: &Self::Value, relu: bool) -> Result<Self::Value, Self::Error>;

    /// Adds two values.
    fn add(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Self::Error>;
}

/// Does all steps of a network, from its input to the channels that pixel shuffle unfolds.
pub(crate) fn take<S: Steps>(
    architecture: Architecture,
    steps: &mut S,
    input: &S::Value,
) -> Result<S::Value, S::Error> {
    let last = architecture.convs - 1;
    let mut x = input.clone();
    match architecture.kind {
        Kind::Chain => {
            for n in 0..last {
                x = steps.conv(n, &x, true)?;
            }
        }
        Kind::Blocks => {
            let head = steps.conv(0, &x, false)?;
            x = head.clone();
            for n in (1..last).step_by(2) {
                let inner = steps.conv(n, &x, true)?;
                let inner = steps.conv(n + 1, &inner, false)?;
                x = steps.add(&x, &inner)?;
            }
            x = steps.add(&x, &head)?;
        }
    }
    steps.conv(last, &x, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the steps down.
    struct Notes;

    impl Steps for Notes {
        type Value = String;
        type Error = std::convert::Infallible;

        fn conv(&mut self, n: usize, x: &String, relu: bool) -> Result<String, Self::Error> {
            Ok(format!("{}{n}({x})", if relu { "r" } else { "c" }))
        }

        fn add(&mut self, a: &String, b: &String) -> Result<String, Self::Error> {
            Ok(format!("[{a}+{b}]"))
        }
    }

    #[test]
    fn steps_follow_each_other_as_the_architecture_says() {
        let steps = |network| take(network, &mut Notes, &"x".to_owned()).unwrap();
        assert_eq!(steps(Architecture::chain(2, 8, 3)), "c2(r1(r0(x)))");
        let blocks = steps(Architecture::blocks(2, 8, 1));
        assert_eq!(blocks, "c3([[c0(x)+c2(r1(c0(x)))]+c0(x)])");
    }
}
