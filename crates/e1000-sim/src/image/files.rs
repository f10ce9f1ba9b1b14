//! dom0's three objects as files.

use std::path::Path;

use elf_loader::modinfo;
use process_lab::stock;

use crate::error::LiveError;
use crate::image::Module;

/// Their bytes.
#[derive(Clone, Debug)]
pub struct Files {
    /// `e1000.ko`.
    pub driver: Vec<u8>,
    /// `hot.o`.
    pub hot: Vec<u8>,
    /// `kernel.o`.
    pub kernel: Vec<u8>,
}

impl Files {
    /// Reads them; the driver may be compressed, as distributions ship it.
    ///
    /// # Errors
    /// [`LiveError::NoFile`] names the file and says how to get it.
    pub fn read(driver: &Path, hot: &Path, kernel: &Path) -> Result<Files, LiveError> {
        Ok(Files {
            driver: file(driver)?,
            hot: file(hot)?,
            kernel: file(kernel)?,
        })
    }

    /// Reads the files of `make support` in a directory, to go with a driver read before.
    ///
    /// # Errors
    /// As [`Files::read`]; and [`LiveError::Release`], for a driver of another
    /// kernel, whose structures may have their fields elsewhere.
    pub fn with_driver(driver: Vec<u8>, support: &Path) -> Result<Files, LiveError> {
        let files = Files {
            driver,
            hot: file(&support.join("hot.o"))?,
            kernel: file(&support.join("kernel.o"))?,
        };
        let driver = release(Module::Driver, &files.driver)?;
        let kernel = release(Module::Kernel, &files.kernel)?;
        if driver == kernel {
            return Ok(files);
        }
        Err(LiveError::Release { driver, kernel })
    }

    /// Reads them where `make stock` and `make support` put them in this
    /// workspace; `$TWIN_STOCK_E1000` names another driver.
    ///
    /// # Errors
    /// As [`Files::read`].
    pub fn find() -> Result<Files, LiveError> {
        let support = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/support"));
        Files::read(
            &stock::path(),
            &support.join("hot.o"),
            &support.join("kernel.o"),
        )
    }

    /// As [`crate::image::KernelPlan::new`] takes them.
    pub fn modules(&self) -> [(Module, &[u8]); 3] {
        [
            (Module::Driver, &self.driver),
            (Module::Hot, &self.hot),
            (Module::Kernel, &self.kernel),
        ]
    }
}

/// The release of the kernel that an object was built for, as it says itself.
fn release(module: Module, bytes: &[u8]) -> Result<String, LiveError> {
    let object = elf_loader::read(bytes).map_err(|source| LiveError::Read { module, source })?;
    Ok(modinfo::release(&object).unwrap_or("unknown").to_owned())
}

fn file(path: &Path) -> Result<Vec<u8>, LiveError> {
    let failed = |source: std::io::Error| LiveError::NoFile {
        path: path.to_path_buf(),
        source,
    };
    let bytes = std::fs::read(path).map_err(failed)?;
    elf_loader::input::decompress(bytes).map_err(|e| failed(std::io::Error::other(e)))
}
