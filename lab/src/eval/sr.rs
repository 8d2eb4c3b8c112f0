//! Super-resolution of single pictures with the enhancer's engine.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::cells::Cells;
use windlass_hybrid::detail::Detail;
use windlass_hybrid::resample::to_plane;
use windlass_sr::{
    CpuEngine, Engine, Inputs, Luma, Model, Residual, Simd, fused_model, infer_tiles,
    infer_tiles_fused,
};
use windlass_types::Size;
use windlass_types::tiles::TileMap;
use windlass_vp9::simd::Isa;
use windlass_vp9::{Picture, Plane};

use super::cpu_clock::CpuClock;
use super::scale::Scale;

/// The network with the weights of a file, or with those that the binary carries.
pub(crate) fn network(file: Option<&Path>) -> Result<Arc<Model>> {
    let Some(path) = file else {
        return fused_model().context("loading the network that this binary carries");
    };
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let model = Model::from_safetensors(&bytes);
    Ok(Arc::new(model.with_context(|| format!("{} is no model for this engine", path.display()))?))
}

/// The luma that a viewer sees of a low picture without anchors.
pub(crate) fn without_anchors(low: &Plane, scale: Scale) -> Plane {
    let mut seen = scale.base(low);
    Prior::new(Isa::detect(), scale.factor()).put_back(low.into(), &mut seen, Cells::All);
    to_plane(&seen)
}

/// A network with its engine, its working memory and the CPU time so far.
pub(crate) struct Upscaler {
    engine: CpuEngine,
    residual: Residual,
    clock: CpuClock,
}

impl Upscaler {
    /// The network that the binary carries, on the CPU.
    pub(crate) fn new() -> Result<Upscaler> {
        network(None).map(Upscaler::with)
    }

    /// A network from a file, on the CPU.
    pub(crate) fn from_file(path: &Path) -> Result<Upscaler> {
        network(Some(path)).map(Upscaler::with)
    }

    /// This network on another backend of the CPU, by the name that reports give it.
    pub(crate) fn on(self, backend: &str) -> Result<Upscaler> {
        let found = Simd::available().into_iter().find(|simd| simd.name() == backend);
        let engine = found.and_then(|simd| CpuEngine::with_simd(self.engine.model().clone(), simd));
        let engine = engine.with_context(|| format!("this CPU has no backend {backend}"))?;
        Ok(Upscaler { engine, ..self })
    }

    /// A network on the CPU.
    pub(crate) fn with(model: Arc<Model>) -> Upscaler {
        Upscaler {
            engine: CpuEngine::new(model),
            residual: Residual::default(),
            clock: CpuClock::default(),
        }
    }

    /// The network.
    pub(crate) fn model(&self) -> &Arc<Model> {
        self.engine.model()
    }

    /// The network's scale.
    pub(crate) fn scale(&self) -> Scale {
        Scale::of(self.engine.architecture())
    }

    /// Name of the backend that runs the network.
    pub(crate) fn backend(&self) -> &'static str {
        self.engine.backend()
    }

    /// Forgets the CPU time so far.
    pub(crate) fn restart_clock(&mut self) {
        self.clock = CpuClock::default();
    }

    /// Mean CPU time of one picture in milliseconds, since the clock was restarted.
    pub(crate) fn infer_ms(&self) -> Option<f64> {
        self.clock.mean_run_ms()
    }

    /// The detail of an LR picture over its Lanczos base.
    pub(crate) fn detail(&mut self, lr: &Plane) -> Result<Detail> {
        let scale = self.scale();
        let (engine, residual) = (&mut self.engine, &mut self.residual);
        if engine.architecture().has_twin() {
            let all = TileMap::full(Size::saturating(lr.width(), lr.height()));
            return Ok(self.tiles(lr, &without_anchors(lr, scale), &all)?.0);
        }
        let luma = Luma::packed(lr.samples(), lr.width(), lr.height())?;
        self.clock.measure(|| engine.infer(luma, residual))?;
        self.residual.to_detail().context("the network's picture has another size than it says")
    }

    /// The detail of some tiles of an LR picture, where viewers see `seen`. Returned too: how many samples went
    /// through the network.
    pub(crate) fn tiles(
        &mut self,
        lr: &Plane,
        seen: &Plane,
        tiles: &TileMap,
    ) -> Result<(Detail, usize)> {
        let (engine, residual) = (&mut self.engine, &mut self.residual);
        let inputs = engine.architecture().inputs;
        Ok(self.clock.measure(|| match inputs {
            Inputs::Luma => infer_tiles(engine, lr.into(), tiles, residual),
            Inputs::LumaAndTwin => {
                infer_tiles_fused(engine, lr.into(), seen.into(), tiles, residual)
            }
        })?)
    }

    /// The HR picture of an LR one, by the network.
    pub(crate) fn picture(&mut self, lr: &Picture) -> Result<Picture> {
        let detail = self.detail(&lr.y)?;
        let mut luma = self.scale().base(&lr.y);
        for (base, d) in luma.samples_mut().iter_mut().zip(detail.samples()) {
            *base = base.saturating_add(*d);
        }
        Ok(self.scale().with_luma(to_plane(&luma), lr))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_file_is_used_and_anything_else_is_refused_with_its_name() {
        let file = "../models/fused-xs-x2.safetensors";
        let low = Picture {
            y: Plane::filled(24, 16, 90),
            u: Plane::filled(12, 8, 128),
            v: Plane::filled(12, 8, 128),
        };
        let mut given = Upscaler::from_file(Path::new(file)).unwrap();
        let high = given.picture(&low).unwrap();
        assert_eq!((high.y.width(), high.y.height(), given.scale()), (48, 32, Scale::TWO));
        assert!(
            high.y == Upscaler::new().unwrap().picture(&low).unwrap().y,
            "it is the built-in one"
        );
        let other = "../models/xs-x2.safetensors";
        let other = Upscaler::from_file(Path::new(other)).unwrap().picture(&low).unwrap();
        assert!(high.y != other.y, "and this is another");
        let refused = Upscaler::from_file(Path::new("Cargo.toml")).err().unwrap().to_string();
        assert!(refused.contains("Cargo.toml"), "{refused}");
    }
}
