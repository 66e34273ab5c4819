//! Files that appear whole, or not at all.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A file that is written under another name and renamed at the end.
pub(crate) struct Unfinished {
    temporary: PathBuf,
    path: PathBuf,
}

impl Unfinished {
    pub(crate) fn create(path: &Path) -> anyhow::Result<(File, Unfinished)> {
        let mut temporary = path.to_owned().into_os_string();
        temporary.push(".partial");
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary);
        let file = file.with_context(|| format!("cannot create {}", temporary.display()))?;
        Ok((file, Unfinished { temporary, path: path.to_owned() }))
    }

    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        let Unfinished { temporary, path } = self;
        std::fs::rename(temporary, path)
            .with_context(|| format!("cannot rename {} to {}", temporary.display(), path.display()))
    }
}

/// Writes a whole file, or nothing.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let (mut file, unfinished) = Unfinished::create(path)?;
    file.write_all(bytes).with_context(|| format!("cannot write {}", path.display()))?;
    unfinished.finish()
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the renaming there is nothing left to remove.
        let _ = std::fs::remove_file(&self.temporary);
    }
}
