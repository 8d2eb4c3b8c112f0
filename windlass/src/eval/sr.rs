//! Super-resolution of single pictures with the enhancer's engine.

use anyhow::{Context, Result};
use windlass_enhancer::engine::{CpuEngine, Engine, Luma, Residual, embedded_model, infer_tiles};
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::detail::Detail;
use windlass_hybrid::picture::{Picture, Plane};
use windlass_hybrid::resample::{bicubic2x, lanczos2x_q4, to_plane};

use super::cpu_clock::CpuClock;

/// The network, its working memory and what it has cost so far.
pub struct Upscaler {
    engine: CpuEngine,
    residual: Residual,
    clock: CpuClock,
}

impl Upscaler {
    /// The network that the binary carries, on the processor.
    pub fn new() -> Result<Upscaler> {
        let model = embedded_model().context("loading the network that this binary carries")?;
        Ok(Upscaler {
            engine: CpuEngine::new(model),
            residual: Residual::default(),
            clock: CpuClock::default(),
        })
    }

    /// What runs it.
    pub fn backend(&self) -> &'static str {
        self.engine.backend()
    }

    /// Forgets what it has cost.
    pub fn restart_clock(&mut self) {
        self.clock = CpuClock::default();
    }

    /// Mean processor time of one picture in milliseconds since the clock was restarted.
    pub fn infer_ms(&self) -> Option<f64> {
        self.clock.mean_run_ms()
    }

    /// The detail of an LR picture over its Lanczos base.
    pub fn detail(&mut self, lr: &Plane) -> Result<Detail> {
        let luma = Luma::packed(lr.samples(), lr.width(), lr.height())?;
        let (engine, residual) = (&mut self.engine, &mut self.residual);
        self.clock.measure(|| engine.infer(luma, residual))?;
        self.residual.to_detail().context("the network's picture has another size than it says")
    }

    /// The detail of some tiles of an LR picture, and how many samples went through the network for it.
    pub fn tiles(&mut self, lr: &Plane, tiles: &TileMap) -> Result<(Detail, usize)> {
        let (engine, residual) = (&mut self.engine, &mut self.residual);
        Ok(self.clock.measure(|| infer_tiles(engine, lr.into(), tiles, residual))?)
    }

    /// The HR picture of an LR one.
    pub fn picture(&mut self, lr: &Picture) -> Result<Picture> {
        let detail = self.detail(&lr.y)?;
        let mut luma = lanczos2x_q4(&lr.y);
        for (base, d) in luma.samples_mut().iter_mut().zip(detail.samples()) {
            *base = base.saturating_add(*d);
        }
        let chroma = |plane: &Plane| bicubic2x(plane, lr.width(), lr.height());
        Ok(Picture { y: to_plane(&luma), u: chroma(&lr.u), v: chroma(&lr.v) })
    }
}
