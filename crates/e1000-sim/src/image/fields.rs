//! Offsets and sizes of kernel structures' fields: a table that kernel.o carries
//! (`kernel_fields`, the compiler's offsets).

use std::collections::HashMap;

use super::KernelPlan;
use crate::memory::view::View;

const NAME: u64 = 48;
const ENTRY: u64 = NAME + 16;

/// The table, by names like `sk_buff.data`: offset and size. `None` before kernel.o is
/// loaded.
pub fn fields(plan: &KernelPlan<'_>, view: &View<'_>) -> Option<HashMap<String, (u64, u64)>> {
    let count = word(view, plan.symbol("kernel_fields_count")?)?;
    let table = plan.symbol("kernel_fields")?;
    let entry = |number: u64| {
        let at = table + number * ENTRY;
        let mut name = [0; NAME as usize];
        view.read(at, &mut name)?;
        let place = (word(view, at + NAME)?, word(view, at + NAME + 8)?);
        Some((crate::dom0::interface::text(&name), place))
    };
    (0..count).map(entry).collect()
}

fn word(view: &View<'_>, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    view.read(at, &mut bytes)?;
    Some(u64::from_le_bytes(bytes))
}
