//! Computes constants from load tests: the slopes between them.

use anyhow::{Context, Result};
use windlass_plan::{
    BudgetCost, Constants, Forwarding, LayerCost, Machine, Memory, NetworkCost, Resting,
};

use super::frames::FrameCost;
use super::runs::{Run, Taken};

/// Number of rounds of the fit; three unknowns have settled long before.
const ROUNDS: usize = 20_000;

/// Fits the constants to the measured load tests.
pub(super) fn fit(
    machine: Machine,
    measured: String,
    networks: Vec<NetworkCost>,
    frames: &[FrameCost],
    taken: &[(Run, Taken)],
) -> Result<Constants> {
    let plain = || taken.iter().filter(|(run, _)| run.budget_ms.is_none());
    let equations =
        plain().map(|(_, t)| ([1.0, 1e-6 * t.packets_in, 1e-6 * t.packets_out], t.cores));
    let [cores, us_in, us_out] = least_squares(&equations.collect::<Vec<_>>());
    let clients = plain().map(|(run, t)| {
        let publishers = f64::from(run.publishers);
        ([1.0, publishers, publishers * f64::from(run.viewers)], t.mib - t.empty_mib)
    });
    let [grown, publisher_mib, viewer_mib] = least_squares(&clients.collect::<Vec<_>>());
    let empty = plain().map(|(_, t)| t.empty_mib).sum::<f64>() / plain().count().max(1) as f64;
    let mut constants = Constants {
        machine,
        measured,
        resting: Resting { cores, mib: empty + grown },
        forwarding: Forwarding { us_in, us_out },
        memory: Memory { publisher_mib, viewer_mib },
        fps: taken.first().map_or(30.0, |(_, t)| t.fps),
        layers: Vec::new(),
        networks,
        budgets: Vec::new(),
    };
    for cost in frames {
        let (run, enhanced) = taken
            .iter()
            .find(|(run, _)| run.layer == cost.layer && run.budget_ms.is_some())
            .with_context(|| format!("no load test enhances {}", cost.layer))?;
        let layer = layer(&constants, cost, run, enhanced)?;
        constants.layers.push(layer);
    }
    let first = frames.first().map(|cost| cost.layer);
    let budgets = taken.iter().filter(|(run, _)| Some(run.layer) == first);
    constants.budgets = budgets
        .filter_map(|(run, t)| {
            let budget_ms = f64::from(run.budget_ms?);
            Some(BudgetCost { budget_ms, anchors_per_s: t.anchors_per_s, missed: t.missed })
        })
        .collect();
    constants.budgets.sort_by(|a, b| a.budget_ms.total_cmp(&b.budget_ms));
    Ok(constants)
}

/// The cost of a layer: what remains of an enhanced run without forwarding, decoding and anchors.
fn layer(known: &Constants, cost: &FrameCost, run: &Run, t: &Taken) -> Result<LayerCost> {
    let publishers = f64::from(run.publishers);
    let size = run.size();
    let network = known.networks.first().context("there is no network")?;
    let pixels = f64::from(size.pixels());
    let anchors = publishers * t.anchors_per_s * pixels * network.ns_by_sample / 1e9;
    let forwarding = known.resting.cores
        + 1e-6 * (t.packets_in * known.forwarding.us_in + t.packets_out * known.forwarding.us_out);
    let frames = publishers * known.fps / 1e3;
    let rest = t.cores - forwarding - anchors - frames * (cost.decode_ms + cost.follow_ms);
    let clients = publishers
        * (known.memory.publisher_mib + f64::from(run.viewers) * known.memory.viewer_mib);
    Ok(LayerCost {
        width: size.width.into(),
        height: size.height.into(),
        kbps: t.sent_kbps / publishers,
        packets: t.packets_in / publishers,
        decode_ms: cost.decode_ms,
        follow_ms: cost.follow_ms,
        other_ms: (rest / frames).max(0.0),
        tap_mib: ((t.mib - known.resting.mib - clients) / publishers).max(0.0),
        anchor_bytes: t.anchor_bytes,
    })
}

/// The non-negative solution of least squares, where errors count as parts of the right side: so a busy run counts no
/// more than a quiet one. The unknowns are improved one after the other, again and again.
fn least_squares<const N: usize>(equations: &[([f64; N], f64)]) -> [f64; N] {
    let mut found = [0.0; N];
    let scaled: Vec<([f64; N], f64)> = equations
        .iter()
        .filter(|(_, right)| *right > 0.0)
        .map(|(left, right)| (left.map(|factor| factor / right), 1.0))
        .collect();
    for _ in 0..ROUNDS {
        for j in 0..N {
            let (mut up, mut down) = (0.0, 0.0);
            for (left, right) in &scaled {
                let others: f64 = (0..N).filter(|&i| i != j).map(|i| left[i] * found[i]).sum();
                up += left[j] * (right - others);
                down += left[j] * left[j];
            }
            if down > 0.0 {
                found[j] = f64::max(0.0, up / down);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_plan::{Answer, Demand};
    use windlass_types::Size;

    use super::*;
    use crate::calibrate::runs::FITTED;

    /// What a server takes whose parts take exactly this.
    fn exact(run: Run) -> Taken {
        let (publishers, viewers) = (f64::from(run.publishers), f64::from(run.viewers));
        let by = if run.layer == "q" { 1.0 } else { 4.0 };
        let (packets_in, packets_out) = (publishers * 30.0 * by, publishers * viewers * 30.0 * by);
        let enhanced = run.budget_ms.map_or(0.0, |_| publishers);
        let anchors_per_s = run.budget_ms.map_or(0.0, |ms| f64::from(ms.min(200)) / 200.0);
        let anchors = enhanced * anchors_per_s * 57_600.0 * by * 200.0 / 1e9;
        Taken {
            fps: 30.0,
            cores: 0.005
                + (packets_in * 20.0 + packets_out * 30.0) / 1e6
                + anchors
                + enhanced * 30.0 * 1.5 * by / 1e3,
            empty_mib: 40.0,
            mib: 42.0 + publishers * 0.5 + publishers * viewers * 0.25 + enhanced * 8.0 * by,
            packets_in,
            packets_out,
            sent_kbps: publishers * 100.0 * by,
            video_kbps: publishers * viewers * 100.0 * by,
            anchor_kbps: enhanced * viewers * anchors_per_s * 16.0 * by,
            anchors_per_s,
            anchor_bytes: 2_000.0 * by,
            missed: 0.0,
        }
    }

    fn fitted() -> Constants {
        let taken: Vec<(Run, Taken)> = FITTED.iter().map(|&run| (run, exact(run))).collect();
        let frames = [("q", 1.0), ("h", 4.0)].map(|(layer, by)| FrameCost {
            layer,
            decode_ms: 0.5 * by,
            follow_ms: 0.25 * by,
        });
        let network = NetworkCost { name: "xs".to_owned(), ns_by_sample: 200.0 };
        let machine = Machine {
            cpu: "x".to_owned(),
            threads: 2,
            platform: "x".to_owned(),
            build: "release".to_owned(),
            load_average: 0.0,
        };
        fit(machine, "2026-11-27".to_owned(), vec![network], &frames, &taken).unwrap()
    }

    #[test]
    fn parts_that_take_exactly_so_much_are_found() {
        let found = fitted();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 0.01 * b, "{a} is not {b}: {found:?}");
        near(found.forwarding.us_in, 20.0);
        near(found.forwarding.us_out, 30.0);
        near(found.resting.mib, 42.0);
        near(found.memory.publisher_mib, 0.5);
        near(found.memory.viewer_mib, 0.25);
        near(found.layers[0].other_ms, 0.75);
        near(found.layers[1].other_ms, 3.0);
        near(found.layers[1].tap_mib, 32.0);
        assert_eq!(
            found.budgets.iter().map(|b| b.budget_ms).collect::<Vec<_>>(),
            [100.0, 200.0, 500.0]
        );
        near(found.budgets[0].anchors_per_s, 0.5);
        found.check().unwrap();
    }

    #[test]
    fn a_run_of_another_size_is_predicted_from_them() {
        let run = Run { layer: "q", publishers: 40, viewers: 3, budget_ms: Some(200) };
        let taken = exact(run);
        let (layer, budget) = (Size::new(320, 180), Duration::from_millis(200));
        let demand = Demand { publishers: 40, viewers: 3, layer, budget };
        let answer = Answer::new(&fitted(), &demand);
        // Anchors' packets are counted in the prediction alone.
        assert!((answer.cores.min() / taken.cores - 1.0).abs() < 0.02, "{answer:?} {taken:?}");
        assert!((answer.mib / taken.mib - 1.0).abs() < 0.01);
    }

    #[test]
    fn nothing_that_takes_less_than_nothing_is_found() {
        let equations = [([1.0, 1.0], 1.0), ([1.0, 2.0], 0.5), ([1.0, 3.0], 0.2)];
        let found = least_squares(&equations);
        assert!(found[1].abs() < 1e-12 && found[0] > 0.0, "{found:?}");
    }
}
