//! HR reconstruction.
pub mod motion;

use crate::detail::Detail;
use crate::picture::Picture;
use crate::resample::{box_half_signed, lanczos2x_signed};
use crate::vp9::{Block, FrameInfo};
use motion::{Area, MotionScratch, compensate};
use std::sync::Arc;

/// EXPERIMENT parameters
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reconstruction {
    pub beta: f32,
    pub gamma: f32,
    pub delta: f32,
    pub conf_lo: f32,
    pub conf_hi: f32,
    pub decay: f32,
    pub mode: u32,
}
impl Default for Reconstruction {
    fn default() -> Self {
        Self { beta: 0.0, gamma: 0.0, delta: 0.0, conf_lo: 1e9, conf_hi: 1e9, decay: 1.0, mode: 0 }
    }
}

#[derive(Debug)]
pub struct Twin {
    pub id: u64,
    pub low: Arc<Picture>,
    pub base: Arc<Detail>,
    pub detail: Option<Detail>,
}

pub fn propagate(
    info: &FrameInfo,
    low: &Picture,
    base: &Detail,
    refs: &[Option<Arc<Twin>>; 3],
    p: &Reconstruction,
) -> Option<Detail> {
    let (w, h) = (base.width(), base.height());
    let mut pd = Detail::zero(w, h);
    let mut pl = Detail::zero(w, h);
    let any = !info.is_intra() && refs.iter().flatten().any(|t| t.detail.is_some());
    if !any && p.gamma == 0.0 && p.delta == 0.0 {
        return None;
    }
    // confidence per HR sample in blocks (weight 0..256)
    let mut wt = vec![0u16; w * h];
    let mut scratch = MotionScratch::default();
    let mut buf = vec![0i16; 128 * 128];
    let mut buf2 = vec![0i16; 128 * 128];
    if !info.is_intra() {
        for b in &info.blocks {
            block(b, base, refs, p, &mut pd, &mut pl, &mut wt, &mut scratch, &mut buf, &mut buf2);
        }
    }
    // confidence by block: error of box(pl) against the low picture
    let bl = box_half_signed(&pl);
    if p.conf_hi < 1e8 {
        let (lw, lh) = (low.width(), low.height());
        for cy in (0..lh).step_by(8) {
            for cx in (0..lw).step_by(8) {
                let (ew, eh) = (8.min(lw - cx), 8.min(lh - cy));
                let mut e = 0i64;
                for y in 0..eh {
                    for x in 0..ew {
                        let l = box_base(base, cx + x, cy + y);
                        e += (bl.row(cy + y)[cx + x] as i64 - l as i64).abs();
                    }
                }
                let e = e as f32 / (ew * eh) as f32 / 16.0;
                let k = ((p.conf_hi - e) / (p.conf_hi - p.conf_lo)).clamp(0.0, 1.0);
                for y in 0..2 * eh {
                    for x in 0..2 * ew {
                        let v = &mut wt[(2 * cy + y) * w + 2 * cx + x];
                        if *v > 1000 { continue; }
                        *v = (*v as f32 * k) as u16;
                    }
                }
            }
        }
    }
    let mut out = Detail::zero(w, h);
    let zero = Detail::zero(0, 0);
    let ubd = if p.beta != 0.0 { lanczos2x_signed(&box_half_signed(&pd)) } else { zero.clone() };
    let ubl = if p.gamma != 0.0 {
        match p.mode {
            // zero out intra
            _ => lanczos2x_signed(&bl),
        }
    } else {
        zero.clone()
    };
    let s = if p.delta != 0.0 {
        let mut d = box_half_signed(base);
        for (d, &l) in d.samples_mut().iter_mut().zip(low.y.samples()) {
            *d = i16::from(l) * 16 - *d;
        }
        lanczos2x_signed(&d)
    } else {
        zero
    };
    for i in 0..w * h {
        let mut v = pd.samples()[i] as f32;
        let keep = wt[i] > 1000;
        let wi = if keep { 256.0 } else { wt[i] as f32 };
        if p.beta != 0.0 && !keep {
            v -= p.beta * ubd.samples()[i] as f32;
        }
        if p.gamma != 0.0 {
            v += p.gamma * (pl.samples()[i] as f32 - ubl.samples()[i] as f32);
        }
        v *= wi / 256.0 * if keep { 1.0 } else { p.decay };
        if p.delta != 0.0 {
            v += p.delta * s.samples()[i] as f32;
        }
        out.samples_mut()[i] = v.round() as i16;
    }
    Some(out)
}

fn box_base(base: &Detail, x: usize, y: usize) -> i16 {
    let (a, b) = (base.row(2 * y), base.row(2 * y + 1));
    ((a[2 * x] as i32 + a[2 * x + 1] as i32 + b[2 * x] as i32 + b[2 * x + 1] as i32 + 2) >> 2)
        as i16
}

#[allow(clippy::too_many_arguments)]
fn block(
    b: &Block,
    base: &Detail,
    refs: &[Option<Arc<Twin>>; 3],
    p: &Reconstruction,
    pd: &mut Detail,
    pl: &mut Detail,
    wt: &mut [u16],
    scratch: &mut MotionScratch,
    buf: &mut [i16],
    buf2: &mut [i16],
) {
    let (w, h) = (base.width(), base.height());
    let (x, y) = (2 * b.x as usize, 2 * b.y as usize);
    let area = Area {
        x,
        y,
        width: (2 * b.width as usize).min(w - x),
        height: (2 * b.height as usize).min(h - y),
    };
    let n = area.width * area.height;
    let mut count = 0;
    for pred in b.predictions.iter().flatten() {
        let Some(t) = &refs[pred.0.index()] else { return };
        if (t.base.width(), t.base.height()) != (w, h) {
            return;
        }
        for (dst, which) in [(&mut *pd, 0), (&mut *pl, 1)] {
            let src = if which == 0 {
                match &t.detail {
                    Some(d) => d,
                    None => continue,
                }
            } else {
                &*t.base
            };
            compensate(src, area, pred.1, scratch, &mut buf[..n]);
            let div = if b.predictions[1].is_some() { 2 } else { 1 };
            for r in 0..area.height {
                for (o, &v) in
                    dst.row_mut(y + r)[x..x + area.width].iter_mut().zip(&buf[r * area.width..])
                {
                    *o += v / div;
                }
            }
        }
        count += 1;
    }
    let _ = buf2;
    if count == 0 {
        // intra: pl = base so that its back-projection is neutral-ish
        for r in 0..area.height {
            let src = &base.row(y + r)[x..x + area.width];
            pl.row_mut(y + r)[x..x + area.width].copy_from_slice(src);
        }
        return;
    }
    let mv0 = b.predictions[0].is_some_and(|p| p.1.x == 0 && p.1.y == 0);
    let keep = match p.mode { 1 => b.skip, 2 => b.skip && mv0, _ => false };
    for r in 0..area.height {
        wt[(y + r) * w + x..][..area.width].fill(if keep { 256 + 1024 } else { 256 });
    }
    let _ = p;
}
