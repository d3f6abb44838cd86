//! What random kernels are held to: all engines give the same bytes or the same report.

use std::ops::Range;

use handloom_diag::Style;
use handloom_filetest::engines::{INTERP, Job, WIDE_EXACT, Way, is_there, ways};
use handloom_runtime::{Backend, Bounds, Tier};

use crate::filetest::without_window;

/// Seeds of a run: `HANDLOOM_KERNELS` of them, else `kernels`, from `HANDLOOM_SEED` on.
fn seeds(kernels: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok());
    let first = number("HANDLOOM_SEED").unwrap_or(0);
    first..first + number("HANDLOOM_KERNELS").unwrap_or(kernels)
}

/// Makes jobs from seeds, `kernels` of them unless somebody wants others, and compares engines on each.
///
/// # Panics
/// When they differ on some: with the first three messages.
pub fn agree_on(kernels: u64, compare: impl Fn(u64) -> Result<(), String>) {
    let wrong: Vec<String> = seeds(kernels).filter_map(|seed| compare(seed).err()).take(3).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Runs a job on all engines and says what differs. `told` puts the way and the difference into a message.
///
/// # Errors
/// The message.
pub fn agree(job: &Job<'_>, told: &dyn Fn(Way, &str) -> String) -> Result<(), String> {
    let want = job.run(INTERP, 0).map_err(|e| told(INTERP, &e))?;
    // Cranelift's code counts lanes that did the same by groups, so that its note may say more or fewer.
    let cut = |way: Way, r: &Option<String>| match way.backend {
        Backend::Wide => r.clone(),
        _ => r.as_ref().map(|r| {
            r.lines().filter(|l| !l.contains("did the same") && l.trim() != "|").collect::<Vec<_>>().join("\n")
        }),
    };
    let report = want.trap.as_ref().map(|t| without_window(&t.human(Style::Plain, None)));
    let careful = Way { name: "wide, careful code", tier: Tier::Careful, ..WIDE_EXACT };
    for way in ways().chain(is_there(careful.backend, careful.vectors).then_some(careful)) {
        // Contained bounds let a stray inside the heap pass.
        if way == INTERP || report.is_some() && way.bounds == Bounds::Contained {
            continue;
        }
        let got = job.run(way, 0).map_err(|e| told(way, &e))?;
        let now = got.trap.as_ref().map(|t| without_window(&t.human(Style::Plain, None)));
        if cut(way, &now) != cut(way, &report) {
            let text = |r: &Option<String>| r.clone().unwrap_or_else(|| "no trap".into());
            return Err(told(way, &format!("{}\ninstead of {}", text(&now), text(&report))));
        }
        if report.is_none() && got.buffers != want.buffers {
            let at = got.buffers[0].iter().zip(&want.buffers[0]).position(|(a, b)| a != b);
            return Err(told(way, &format!("byte {at:?} differs")));
        }
    }
    Ok(())
}
