//! The pages of dom0's at which guests' pages appear: their page-table entries, which only the hypervisor writes.
//!
//! No processor of the testbed walks this table: dom0's process has all memory mapped anyway. What dom0 reads of a
//! mapped page it reads by [`Window::address`], which knows only what is mapped.

/// Pages of the window: 4,096 mappings, each at a page of its own.
pub const PAGES: usize = super::maptrack::MAPPINGS;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const FRAME_SHIFT: u32 = 12;

/// The number of a page of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPage(pub u16);

/// The page-table entries.
#[derive(Debug)]
pub struct Window(Vec<u64>);

impl Default for Window {
    fn default() -> Window {
        Window(vec![0; PAGES])
    }
}

impl Window {
    /// Whether a page exists and nothing is mapped there.
    pub fn is_free(&self, page: WindowPage) -> bool {
        self.0.get(usize::from(page.0)) == Some(&0)
    }

    /// Maps a frame there. The page is free.
    pub fn set(&mut self, page: WindowPage, frame: u64, writable: bool) {
        let rights = if writable {
            PRESENT | WRITABLE
        } else {
            PRESENT
        };
        self.0[usize::from(page.0)] = frame << FRAME_SHIFT | rights;
    }

    /// Takes away what is mapped there.
    pub fn clear(&mut self, page: WindowPage) {
        self.0[usize::from(page.0)] = 0;
    }

    /// The machine address of the page that dom0 sees there.
    pub fn address(&self, page: WindowPage) -> Option<u64> {
        let entry = *self.0.get(usize::from(page.0))?;
        (entry & PRESENT != 0).then_some(entry & !(PRESENT | WRITABLE))
    }
}
