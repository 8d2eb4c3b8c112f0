//! The networks that are built in are those of `models/frames`.
//!
//! After training: `UPDATE_EXPECT=1 cargo test -p windlass-network --test built_in`.

use std::path::Path;

use windlass_network::{Changed, Network, Runner, Tier, Weights};
use windlass_vp9::Plane;
use windlass_vp9::simd::Isa;

/// The file of a network, and the test vector beside it.
fn model(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/frames").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn they_are_the_integers_of_the_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("networks");
    for name in ["xxs-x2", "xxs-x4", "xs-x2", "xs-x3", "xs-x4"] {
        let weights = Weights::from_safetensors(&model(&format!("{name}.safetensors"))).unwrap();
        let bytes = Network::new(&weights).unwrap().to_bytes();
        windlass_files::hold(folder.join(format!("{name}.bin")), bytes);
    }
}

#[test]
fn they_answer_as_pytorch_does() {
    for tier in Tier::ALL {
        for network in tier.networks() {
            let name = format!("{tier}-x{}", network.scale());
            let file = model(&format!("{name}.fixture.safetensors"));
            let vector = safetensors::SafeTensors::deserialize(&file).unwrap();
            let plane = |tensor: &str| {
                let view = vector.tensor(tensor).unwrap();
                Plane::from_samples(view.shape()[1], view.shape()[0], view.data().to_vec()).unwrap()
            };
            let (low, high) = (plane("lr"), plane("twin"));
            let mut shown = high.clone();
            let mut runner = Runner::new(Isa::detect());
            runner.run(network, (&low).into(), (&high).into(), Changed::All, &mut shown);
            let expected = vector.tensor("high").unwrap();
            let expected = expected.data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
            let errors = expected.zip(shown.samples()).map(|(exact, &made)| {
                (f64::from(exact.clamp(0.0, 255.0)) - f64::from(made)).powi(2)
            });
            let rms = (errors.sum::<f64>() / shown.samples().len() as f64).sqrt();
            // Rounding to grey levels alone makes 0.29; the picture is harsher than any camera's.
            assert!(rms < 0.5, "{name}: {rms}");
        }
    }
}
