use proptest::prelude::*;

use super::*;
use crate::networks::NetworkCost;

const MS: Duration = Duration::from_millis(1);
const CALIBRATED: Order = Order::Calibrated { lambda: LAMBDA };
const SHORTEST: Order = Order::Shortest { lambda: LAMBDA };

impl<T> AcceleratorQueue<T> {
    /// A job that comes this long after another never overtakes it, if no job takes longer than `longest`; `None`:
    /// there is no bound.
    fn overtaking(&self, longest: Duration) -> Option<Duration> {
        match self.order {
            Order::Fifo => Some(Duration::ZERO),
            order if order.lambda() > 0.0 => {
                Duration::try_from_secs_f64(longest.as_secs_f64() / order.lambda()).ok()
            }
            _ => None,
        }
    }
}

/// Networks of 1 µs by pixel, which take 40 ms to load.
fn job_times(networks: usize) -> JobTimes {
    let cost = NetworkCost { scale: 2, per_pixel: Duration::from_micros(1) };
    let mut model = JobTimes::new(&vec![cost; networks]);
    (0..80).for_each(|_| model.observe(0, 10_000, false, 50 * MS));
    model
}

/// A picture that takes so many milliseconds.
fn shape(network: usize, ms: u16) -> Shape {
    Shape { network, size: Size::new(1_000, ms) }
}

/// A device that does one job after the other: who came when and what it is of; out: when each was done.
struct Device {
    queue: AcceleratorQueue<usize>,
    model: JobTimes,
    resident: Option<usize>,
    loads: usize,
}

impl Device {
    fn new(order: Order, networks: usize) -> Device {
        let queue = AcceleratorQueue::new(order, usize::MAX);
        Device { queue, model: job_times(networks), resident: None, loads: 0 }
    }

    /// In the order in which they were begun, with when they were done.
    fn serve(&mut self, jobs: &[(Duration, Shape)]) -> Vec<(usize, Duration)> {
        let (mut now, mut next, mut done, mut out) = (Duration::ZERO, 0, Vec::new(), Vec::new());
        while done.len() < jobs.len() {
            while let Some(&(came, shape)) = jobs.get(next).filter(|job| job.0 <= now) {
                assert!(self.queue.push(came, shape, next, &self.model).is_none());
                next += 1;
            }
            let Some(shape) =
                self.queue.pop(now, self.resident.as_slice(), 1, &self.model, &mut out)
            else {
                now = jobs[next].0;
                continue;
            };
            let resident = self.resident == Some(shape.network);
            now += self.model.predict(shape.network, shape.pixels(), resident);
            self.loads += usize::from(!resident);
            self.resident = Some(shape.network);
            done.extend(out.iter().map(|&job| (job, now)));
        }
        done
    }
}

/// Figure 5.2: A < C < B < D, of which A and D are of one network, and B and C of another.
#[test]
fn calibration_finds_the_second_job_of_the_loaded_network() {
    let jobs =
        [shape(0, 10), shape(1, 30), shape(1, 20), shape(0, 40)].map(|s| (Duration::ZERO, s));
    let order = |order: Order| {
        let mut device = Device::new(order, 2);
        let done = device.serve(&jobs);
        let mean = done.iter().map(|d| d.1.as_secs_f64()).sum::<f64>() / 4.0;
        (done.iter().map(|d| d.0).collect::<Vec<_>>(), device.loads, mean)
    };
    let (fifo, shortest, calibrated) = (order(Order::Fifo), order(SHORTEST), order(CALIBRATED));
    assert_eq!((&fifo.0[..], fifo.1), (&[0, 1, 2, 3][..], 3));
    assert_eq!((&shortest.0[..], shortest.1), (&[0, 2, 1, 3][..], 3));
    assert_eq!((&calibrated.0[..], calibrated.1), (&[0, 3, 2, 1][..], 2));
    assert!(calibrated.2 < shortest.2 && shortest.2 < fifo.2);
}

/// Jobs at random (a Poisson process) of some networks and sizes.
fn arrivals(seed: u64, count: usize, every: Duration, networks: usize) -> Vec<(Duration, Shape)> {
    let mut state = seed;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31)
    };
    let mut now = Duration::ZERO;
    let jobs = (0..count).map(|_| {
        now += every.mul_f64(-(1.0 - random()).max(1e-9).ln());
        let ms = if random() < 0.8 { 5 } else { 40 };
        (now, shape((random() * networks as f64) as usize, ms))
    });
    jobs.collect()
}

fn latencies(order: Order, jobs: &[(Duration, Shape)], networks: usize) -> (f64, f64, Duration) {
    let mut device = Device::new(order, networks);
    let done = device.serve(jobs);
    let mut took: Vec<f64> =
        done.iter().map(|&(job, at)| (at.saturating_sub(jobs[job].0)).as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    let mean = took.iter().sum::<f64>() / took.len() as f64;
    let end = done.iter().map(|d| d.1).max().unwrap_or_default();
    (mean, took[took.len() * 99 / 100], end)
}

#[test]
fn under_load_calibration_serves_sooner_and_more() {
    // A job of 12 ms in the mean each 40 ms; with 40 ms to load, one after the other is too much.
    for seed in 1..6 {
        let jobs = arrivals(seed, 2_000, 40 * MS, 4);
        let fifo = latencies(Order::Fifo, &jobs, 4);
        let shortest = latencies(SHORTEST, &jobs, 4);
        let calibrated = latencies(CALIBRATED, &jobs, 4);
        assert!(
            calibrated.0 < 0.5 * shortest.0 && calibrated.0 < 0.5 * fifo.0,
            "{calibrated:?} {shortest:?} {fifo:?}"
        );
        assert!(
            calibrated.1 < shortest.1 && calibrated.1 < fifo.1,
            "{calibrated:?} {shortest:?} {fifo:?}"
        );
        assert!(calibrated.2 <= fifo.2);
    }
}

#[test]
fn jobs_of_a_shape_go_together() {
    let (mut queue, model, mut out) =
        (AcceleratorQueue::new(CALIBRATED, 16), job_times(2), Vec::new());
    for (n, shape) in
        [shape(0, 10), shape(1, 5), shape(1, 5), shape(1, 6), shape(1, 5)].into_iter().enumerate()
    {
        queue.push(Duration::ZERO, shape, n, &model);
    }
    assert_eq!(queue.pop(MS, &[], 2, &model, &mut out), Some(shape(1, 5)));
    assert_eq!(out, [1, 2]);
    assert_eq!(queue.pop(MS, &[], 9, &model, &mut out), Some(shape(1, 5)));
    assert_eq!(out, [4]);
    assert_eq!(queue.drain().map(|(_, n)| n).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(queue.pop(MS, &[], 9, &model, &mut out), None);
    assert!(out.is_empty() && queue.is_empty());
}

#[test]
fn a_full_queue_gives_back_what_would_be_served_last() {
    let (mut queue, model) = (AcceleratorQueue::new(CALIBRATED, 2), job_times(1));
    assert_eq!(queue.push(Duration::ZERO, shape(0, 10), 'a', &model), None);
    assert_eq!(queue.push(MS, shape(0, 300), 'b', &model), None);
    assert_eq!(queue.push(2 * MS, shape(0, 20), 'c', &model), Some('b'));
    assert_eq!(queue.push(3 * MS, shape(0, 900), 'd', &model), Some('d'));
    assert_eq!(queue.len(), 2);
}

#[test]
fn a_price_for_waiting_that_is_no_number_is_the_usual_one() {
    for lambda in [f64::NAN, f64::INFINITY] {
        let queue = AcceleratorQueue::<()>::new(Order::Calibrated { lambda }, 4);
        assert_eq!(queue.overtaking(10 * MS), Some(10 * MS));
    }
    let free = AcceleratorQueue::<()>::new(Order::Calibrated { lambda: -1.0 }, 4);
    assert_eq!(free.overtaking(10 * MS), None);
}

proptest! {
    /// The bound of the module's text: whoever comes so much later does not overtake.
    #[test]
    fn nobody_is_overtaken_by_those_who_come_much_later(
        seed in 0u64..1_000_000, every in 5u64..60, lambda in 0.05f64..4.0, calibrated in proptest::bool::ANY,
    ) {
        let jobs = arrivals(seed, 300, Duration::from_millis(every), 3);
        let order = if calibrated { Order::Calibrated { lambda } } else { Order::Shortest { lambda } };
        let mut device = Device::new(order, 3);
        let longest = device.model.predict(0, 40_000, false);
        let bound = device.queue.overtaking(longest).expect("there is one");
        let done = device.serve(&jobs);
        for (place, (job, _)) in done.iter().enumerate() {
            for (later, _) in &done[place + 1..] {
                // It came before, and is served after.
                prop_assert!(jobs[*job].0 <= jobs[*later].0 + bound + Duration::from_nanos(10));
            }
        }
    }

    #[test]
    fn every_job_is_served_once(seed in 0u64..1_000_000, every in 1u64..80, order in 0usize..3) {
        let jobs = arrivals(seed, 200, Duration::from_millis(every), 3);
        let order = [Order::Fifo, SHORTEST, CALIBRATED][order];
        let mut served: Vec<usize> = Device::new(order, 3).serve(&jobs).iter().map(|d| d.0).collect();
        if order == Order::Fifo {
            prop_assert!(served.is_sorted());
        }
        served.sort_unstable();
        prop_assert_eq!(served, (0..200).collect::<Vec<_>>());
    }
}

#[test]
fn who_may_be_later_has_not_begun_to_wait() {
    let model = JobTimes::new(&[NetworkCost { scale: 2, per_pixel: Duration::from_nanos(1) }]);
    let mut queue = AcceleratorQueue::new(Order::default(), 10);
    // 'a' may take until 700 ms later than 'b', which came 600 ms after it.
    queue.push(700 * MS, shape(0, 10), 'a', &model);
    queue.push(600 * MS, shape(0, 10), 'b', &model);
    // Longer, but the deadline is far nearer.
    queue.push(100 * MS, shape(0, 90), 'c', &model);
    let mut out = Vec::new();
    let mut order = Vec::new();
    while queue.pop(600 * MS, &[], 1, &model, &mut out).is_some() {
        order.append(&mut out);
    }
    assert_eq!(order, ['c', 'b', 'a']);
}
